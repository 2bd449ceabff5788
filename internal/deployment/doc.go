// Package deployment tests the images, scaffold markers and manifests of all stages together. The rules for a safe
// deployment are the same in every stage, and these tests find a stage that breaks one.
package deployment
