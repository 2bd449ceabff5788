package cloud

import "errors"

// Is reports whether the error is, or wraps, an [Error] with that problem.
func Is(err error, problem Problem) bool {
	answer, found := errors.AsType[*Error](err)
	return found && answer.Problem == problem
}
