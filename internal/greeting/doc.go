// Package greeting is the small operator that chapter 7 tests. For each Greeting, it keeps a ConfigMap with a line of
// text:
//
//	apiVersion: hello.example.com/v1
//	kind: Greeting
//	metadata: {name: ada}
//	spec: {name: Ada, language: de}
//
// becomes the ConfigMap ada-text with the value "Hallo, Ada!" for the key "text".
//
// +kubebuilder:object:generate=true
// +groupName=hello.example.com
// +versionName=v1
package greeting

//go:generate ../../bin/controller-gen object crd rbac:roleName=greeting paths=. output:crd:dir=config/crd output:rbac:dir=config/rbac
