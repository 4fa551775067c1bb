"""PodCliqueSet -> PodClique and PodCliqueScalingGroup -> PodGang -> Pod."""
