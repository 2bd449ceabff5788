// Package exercise lets learners write the stages themselves. A stage's exercises.yaml lists its steps; comments in its files
// mark which step each piece belongs to, see package form. From these the package derives the copy that a learner begins with,
// the form of every file after every step, the solutions, and the tests that check a step.
//
// A learner's copies are in the folder work of the checkout. A check uses the tests of the course in place of those in
// the copy, so that the course can get new tests, and learners can't make a step pass by changing a test. Nothing that
// a learner wrote is ever deleted: whatever would be overwritten is saved in work/kept first.
package exercise
