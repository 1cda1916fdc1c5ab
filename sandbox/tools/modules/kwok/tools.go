//go:build tools

// Package tools pins kwok and everything it is built from.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
