// Package deployment tests the Dockerfiles and manifests of stages 2 to 6, and the scaffold markers of stages 3 to 5.
// The rules for a safe deployment are the same in every stage, and these tests find a stage that breaks one.
package deployment
