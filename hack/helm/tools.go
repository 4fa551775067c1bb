//go:build tools

// Package helm names the command that build.sh builds.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
