package v1

// Hub marks the version that all others are converted to and from.
func (*Password) Hub() {}
