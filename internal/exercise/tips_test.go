package exercise

import (
	"strings"
	"testing"
)

func TestTips(t *testing.T) {
	for found, means := range map[string]string{
		`./sync.go:10:2: "fmt" imported and not used`:                         "gopls",
		`./sync.go:31:9: undefined: apierrors`:                                "gopls",
		"./sync.go:31:9: undefined: strings\n./sync.go:32:9: undefined: name": "gopls",
		`./sync.go:31:9: undefined: strings.TrimSpaces`:                       "the package strings has no TrimSpaces",
		`./sync.go:31:9: undefined: corev1.Pods`:                              "the package corev1 has no Pods",
		`api/v1/guestbook_types.go:12:25: cannot use &Guestbook{} as runtime.Object value: *Guestbook does not implement runtime.Object (missing method DeepCopyObject)`: "make generate",
		`main.go:3:8: no required module provides package example.com/operator-workshop/02-clientgo-foo/pkg/generated/clientset; to add it:`:                             "make generate",
		`./sync.go:31:9: undefined: newDeployment`:                                                                                     "renamed",
		`./a.go:3:5: c.recorder.Eventt undefined (type events.EventRecorder has no field or method Eventt)`:                            "renamed",
		`./deployment.go:55:15: cannot use foo.Spec.Replicas (variable of type int32) as *int32 value in struct literal`:               "new(value)",
		`./deployment.go:70:1: missing return`:                                                                                         "every path",
		`deployments.apps is forbidden: User "system:serviceaccount:a:b" cannot list resource "deployments" in API group "apps"`:       "+kubebuilder:rbac",
		`no kind is registered for the type v1.Guestbook in scheme "pkg/runtime/scheme.go:110"`:                                        "AddToScheme",
		`no matches for kind "Foo" in version "example.com/v1alpha1"`:                                                                  "definition",
		`panic: runtime error: invalid memory address or nil pointer dereference`:                                                      "nil",
		`fatal error: all goroutines are asleep - deadlock!`:                                                                           "wait for each other",
		`resource name may not be empty`:                                                                                               "without a name",
		`an empty namespace may not be set during creation`:                                                                            "namespaced",
		`Operation cannot be fulfilled on foos.example.com "a": the object has been modified; please apply your changes to the latest`: "queued again",
		`Deployment.apps "a" is invalid: spec.template.metadata.labels: Invalid value: selector does not match template labels`:        "match the labels",
		`spec.selectableFields: Invalid value: "": may only be set when validations.schema is included`:                                "selectable",
		"Deployment web has no controller reference to this Foo (with its UID): its owners are []":                                     "your Deployment web exists, but has no owner reference",
		"Deployment web has no controller reference to this Foo (with its UID): its owners are [{\"kind\":\"Pod\",\"name\":\"a\"}]":    "your Deployment web exists and has an owner reference",
		"expected the sample to converge\nfound there is no Deployment sample-web yet":                                                 "a Deployment with the name sample-web was not created",
		"Foo sample is InProgress by kstatus, not Current: Foo generation is 2":                                                        "status says InProgress",
		`its finalizers are ["example.com/cleanup" "b"]`:                                                                               "waits for example.com/cleanup:",
		"found, after 15s at most: there is no condition Ready yet":                                                                    "no condition Ready:",
		"no condition has a message that names it; the conditions are []":                                                              "no conditions at all",
		"found these unused: delete deployments.apps (config/rbac/role.yaml), x":                                                       "delete deployments.apps (config/rbac/role.yaml), but the operator never",
		"found these unused: * configmaps (config/rbac/role.yaml), x":                                                                  "replace it with the verbs",
		"requests refused with 403, perhaps because the role lacks a permission: create deployments.apps\n" +
			`deployments.apps "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`: "update on the subresource finalizers",
		"there is no condition Ready yet\npods is forbidden: User \"a\" cannot list resource \"pods\"":                       "+kubebuilder:rbac",
		"requests refused with 403, perhaps because the role lacks a permission: list pods\nthere is no condition Ready yet": "+kubebuilder:rbac",
		`expected 2, found 0`: "",
		"the server could not find the requested resource (get pods)\nto match error\n    list pods": "",
	} {
		got := (&Finding{Found: found}).Tip()
		if (got == "") != (means == "") || !strings.Contains(strings.ToLower(got), strings.ToLower(means)) {
			t.Errorf("%s\nexpected a tip about %q\nfound %q", found, means, got)
		}
	}
}
