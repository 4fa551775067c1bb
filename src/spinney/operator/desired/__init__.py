"""What should exist for a PodCliqueSet, as pure functions of it: names, manifests, gangs, gates."""
