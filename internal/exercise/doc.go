// Package exercise lets learners write the stages themselves. A stage's exercises.yaml lists its steps, and comments in the
// stage's files mark the code that belongs to each step (see package form). From these marks, the package derives forms
// of each file: its content before the first step, and after each step. The copy that a learner begins with, the
// solutions, and the tests that check a step all consist of such forms.
//
// A learner's copies are in the checkout's folder work. A check uses the course's tests instead of those in the copy, so
// that the course can add tests, and learners can't make a step pass by changing a test. The package never deletes a
// learner's work: before it overwrites a file that the learner may have changed, it saves the file in work/kept.
package exercise
