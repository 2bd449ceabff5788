package operatortest

// Operator describes an operator to the kit. Paths are relative to the folder
// the tests run in, which is that of the test files.
type Operator struct {
	// CRDs are files and folders with the operator's CustomResourceDefinitions.
	CRDs []string
	// Samples is the folder of objects that the API server must accept.
	Samples string
	// InvalidSamples is the folder of objects that it must refuse.
	InvalidSamples string
}
