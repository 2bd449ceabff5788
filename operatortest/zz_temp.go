package operatortest

import "context"

// Placeholder until specs.go defines lab.change: whoever writes that deletes this file.
func (l *lab) change(context.Context) (map[string]any, error) {
	spec := l.sampleSpec()
	for path, values := range l.operator.Values {
		spec[path[len("spec."):]] = values[len(values)-1]
	}
	return spec, nil
}
