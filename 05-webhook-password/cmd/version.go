package main

import "fmt"

// version and revision are what the program was built from. The Makefile and the Dockerfile set them through -ldflags.
var version, revision = "unknown", "unknown"

func versionText() string {
	return fmt.Sprintf("password-operator %s (revision %s)", version, revision)
}
