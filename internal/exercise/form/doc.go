// Package form derives the intermediate forms of a stage's files from the finished ones, in which comments mark what
// belongs to each step of the exercises. A form has no marks of the steps that are done, and leaves out what belongs to
// the other steps.
//
// In Go:
//
//	//workshop:step 2.9
//
// in the doc comment of a function means that its body is the work of step 2.9, and returns zero values until then. In
// the doc comment of a type, a constant, a variable or a field, or above a statement, a case, or an element of a
// composite literal or of an argument list, each on lines of its own, it means that the code is missing until then. At
// the end of a line, it means that the line is missing until then. Words after the step's ID become a comment where
// code is missing:
//
//	//workshop:step 2.13 Tell people.
//
//	//workshop:markers 2.5
//
// in a doc comment means that the lines after it that begin with a plus sign are missing until step 2.5. gofmt moves
// the mark to the end of a declaration's doc comment. There, name the beginnings of the lines, separated by spaces:
//
//	//workshop:markers 2.5 +kubebuilder:validation +kubebuilder:printcolumn
//
//	//workshop:until 2.11 return nil
//
// is a line of code that is only in the forms before step 2.11, and
//
//	//workshop:between 2.9 2.11 return nil
//
// is a line that is only in the forms from step 2.9 on and before step 2.11. A form leaves out imports that it does not
// use.
//
// In YAML, "# workshop:step 2.5" above a key or an element of a list, and above its comments, applies to everything
// that belongs to it, and "# workshop:until 2.5 key: value" is a line that is only in the forms before step 2.5. In
// either language, workshop:file 2.9 on a line of its own means that the whole file is missing until step 2.9.
// workshop:given 2.9 means the same, except that learners need not write the file: they get it when they have done step
// 2.9.
package form
