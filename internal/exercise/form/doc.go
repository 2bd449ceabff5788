// Package form derives the forms of a stage's files: what the files contain when some steps of the exercises are done.
// In the finished files, comments mark the code that belongs to each step. A form leaves out these marks, and the code
// of the steps that are not done.
//
// In Go:
//
//	//workshop:step 2.9
//
// in the doc comment of a function means that learners write its body in step 2.9. Until then, the function returns zero
// values. In the doc comment of a type, a constant, a variable or a field, the mark means that the code is missing until
// then. It means the same above a statement, a case, or an element of a composite literal or of an argument list, each on
// lines of its own. At the end of a line, it means that the line is missing until then. If the mark has a line of its own
// and doesn't concern a function, words after the step's ID become a comment in place of the missing code:
//
//	//workshop:step 2.13 Tell people.
//
//	//workshop:markers 2.5
//
// in a doc comment means that the lines below it that begin with a plus sign are missing until step 2.5. In a
// declaration's doc comment, gofmt moves the mark to the end. There, add the beginnings of the missing lines, separated by
// spaces:
//
//	//workshop:markers 2.5 +kubebuilder:validation +kubebuilder:printcolumn
//
//	//workshop:until 2.11 return nil
//
// adds a line of code to the forms before step 2.11, and
//
//	//workshop:between 2.9 2.11 return nil
//
// adds one to the forms after step 2.9 and before step 2.11. A form leaves out imports that it does not use.
//
// In YAML, "# workshop:step 2.5" above a list element or a key, and above its comments, means that everything that
// belongs to the element or the key is missing until step 2.5. As in Go, words after the step's ID become a comment in
// its place. "# workshop:until 2.5 key: value" adds a line to the forms before step 2.5, and
// "# workshop:between 2.5 2.7 key: value" adds one to the forms after step 2.5 and before step 2.7.
//
// In either language, workshop:file 2.9 on a line of its own means that the whole file is missing until step 2.9.
// workshop:given 2.9 means the same, except that learners need not write the file: they get it when they have done step
// 2.9. They get a test file as soon as step 2.9 is the next one.
package form
