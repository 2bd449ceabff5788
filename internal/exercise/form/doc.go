// Package form derives the intermediate forms of a stage's files from the finished ones, in which comments mark what
// belongs to a later step of the exercises. In a form, the marks of the steps that are done are gone, and what belongs to
// the others is left out.
//
// In Go:
//
//	//workshop:step 2.9
//
// in the doc comment of a function: its body is the work of step 2.9, and returns zero values until then. In the doc comment
// of a type, a constant, a variable or a field, or above a statement, a case, or an element of a composite literal or of an
// argument list, each on lines of its own: it is not there until then. At the end of a line: the line is not there until then.
// Words after the step's ID become a comment where something is missing:
//
//	//workshop:step 2.13 Tell people.
//
//	//workshop:markers 2.5
//
// in a doc comment: the lines after it that begin with a plus sign are not there until step 2.5. gofmt moves the mark to the end of
// the doc comment of a declaration; name there what the lines begin with, separated by spaces:
//
//	//workshop:markers 2.5 +kubebuilder:validation +kubebuilder:printcolumn
//
//	//workshop:until 2.11 return nil
//
// is a line of code that only the forms before step 2.11 have, and
//
//	//workshop:between 2.9 2.11 return nil
//
// one of those from step 2.9 on. Imports that a form does not use are left out.
//
// In YAML, "# workshop:step 2.5" above a key or an element of a list, and above its comments, concerns all that belongs to it, and
// "# workshop:until 2.5 key: value" is a line of the forms before. In either language, workshop:file 2.9 on a line of its own says that the whole
// file is not there until step 2.9. With workshop:given 2.9 it is not there either, but learners need not write it: they get it when they have done step 2.9.
package form
