// Package exercise lets learners write the stages themselves. A stage's exercises.yaml lists its steps; comments in its files
// mark which step each piece belongs to, see package form. From these follow the copy that a learner begins with, the form of
// every file after every step, what is compared and solved, and what each step is checked by.
//
// A learner's copies lie in the folder work of the checkout. The tests in them are replaced by those of the course when a step
// is checked, so the course may grow, and nobody passes by changing a test. Nothing that a learner wrote is ever deleted: what
// would be overwritten is moved to work/kept first.
package exercise
