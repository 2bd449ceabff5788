// Package deployment holds the tests that look at the stages' images, scaffold markers and
// manifests side by side: what makes a deployment safe is the same in all of
// them, and a stage that forgets a part of it is found here.
package deployment
