package exercise

import (
	"regexp"
	"strings"
)

// tips explain what error messages, such as those of the compiler, the API server and the test kit, most likely mean in
// a learner's unfinished code. In means, $1 and $2 are what the groups of found match, such as the name of one of the
// learner's objects.
var tips = []struct {
	found *regexp.Regexp
	means string
}{
	{
		regexp.MustCompile(`cannot set blockOwnerDeletion`),
		"The role lacks update on the subresource finalizers of the owner, such as guestbooks/finalizers: add it to a +kubebuilder:rbac marker, " +
			"and generate the role with make manifests.",
	},
	{
		// This tip comes early: without the permission, many other things are missing, too.
		regexp.MustCompile(`(is|are|was) forbidden: User|cannot (get|list|watch|create|update|patch|delete) resource|perhaps because the role lacks a permission`),
		"The role lacks this permission: add it to a +kubebuilder:rbac marker, and generate the role with make manifests.",
	},
	{
		regexp.MustCompile(`(\w+ \S+) has no controller reference to this (\w+) \(with its UID\): its owners are \[\]`),
		"Your $1 exists, but has no owner reference: the garbage collector will not delete it with its $2.",
	},
	{
		regexp.MustCompile(`(\w+ \S+) has no controller reference to this (\w+) \(with its UID\): its owners are`),
		"Your $1 exists and has an owner reference, but not one with this $2's UID and with controller set to true.",
	},
	{
		regexp.MustCompile(`there is no condition (\w+) yet`),
		"The status has no condition $1: either the status was not written, or it was written without this condition.",
	},
	{
		regexp.MustCompile(`there is no ([A-Z]\w+) (\S+) yet`),
		"A $1 with the name $2 was not created: does the code that creates it run, and does it use this name?",
	},
	{
		regexp.MustCompile(`(\w+ \S+) is (\w+) by kstatus, not Current`),
		"Your $1 exists, but its status says $2: compare its conditions, and observedGeneration with metadata.generation.",
	},
	{
		regexp.MustCompile(`its finalizers are \["([^"\]]+)`),
		"The object is being deleted and waits for $1: does the code that removes this finalizer run?",
	},
	{
		regexp.MustCompile(`no condition has a message that names it; the conditions are \[\]`),
		"The status has no conditions at all: either it was not written, or it was written without conditions.",
	},
	{
		regexp.MustCompile(`found these unused: (\* [^,\n]+)`),
		"The role allows $1, and * stands for every verb: replace it with the verbs that the operator uses.",
	},
	{
		regexp.MustCompile(`found these unused: ([^,\n]+)`),
		"The role allows $1, but the operator never asked for it: remove it from the marker, or write the code that needs it.",
	},
	{
		regexp.MustCompile(`imported and not used|undefined: (fmt|errors|slices|maps|strings|context|time|metav1|corev1|appsv1|apierrors|meta|client|ctrl|types|labels)(?m:$)`),
		"An import is missing or unused: an editor with gopls corrects the imports when you save.",
	},
	{
		regexp.MustCompile(`missing method DeepCopyObject|undefined \(type .* has no field or method DeepCopy|no required module provides package \S+/pkg/generated/`),
		"Generated code is missing or older than the types: run make generate in the copy's folder.",
	},
	{
		regexp.MustCompile(`undefined: (\w+)\.(\w+)`),
		"The package $1 has no $2: is the name misspelt, was it renamed, or does it come with an earlier step?",
	},
	{
		regexp.MustCompile(`undefined: \w+|\w+ undefined \(type`),
		"A name that the tests or the other files use is missing: was it renamed, or does it come with an earlier step?",
	},
	{
		regexp.MustCompile(`cannot use .* as \*\w+(\.\w+)* value`),
		"A pointer is needed here: new(value) makes one.",
	},
	{
		regexp.MustCompile(`missing return`),
		"Every path through a function with results must end in a return.",
	},
	{
		regexp.MustCompile(`no kind is registered for the type|no kind "[^"]*" is registered`),
		"The scheme does not know this type: an AddToScheme is missing.",
	},
	{
		regexp.MustCompile(`no matches for kind|could not find the requested resource`),
		"The API server does not know this kind: is its definition installed, and does it have this version?",
	},
	{
		regexp.MustCompile(`invalid memory address or nil pointer dereference`),
		"Something is nil: functions that you have not written yet return nil, and optional fields are pointers.",
	},
	{
		regexp.MustCompile(`all goroutines are asleep|WARNING: DATA RACE`),
		"Goroutines wait for each other, or share a variable without a lock.",
	},
	{
		regexp.MustCompile(`resource name may not be empty|metadata\.name: Required value`),
		"An object was sent without a name.",
	},
	{
		regexp.MustCompile(`an empty namespace may not be set|the namespace of the provided object does not match`),
		"A namespaced object needs a namespace: use that of the resource that owns it.",
	},
	{
		regexp.MustCompile(`spec\.selectableFields: .*may only be set when validations\.schema is included`),
		"All versions list the same selectable fields, although their schemas differ: was a field renamed in the schema only?",
	},
	{
		regexp.MustCompile(`the object has been modified`),
		"The object that you sent is older than the stored one. Return the error: the key is queued again, and the next reconcile reads the object again.",
	},
	{
		regexp.MustCompile(`selector.*does not match template|selector.*field is immutable`),
		"A selector must match the labels of the pods, and can't be changed later.",
	},
}

// Tip returns what the finding most likely means, or "" if that is unknown or a test causes the error on purpose.
func (f *Finding) Tip() string {
	if strings.Contains(f.Found, "to match error") {
		return "" // the test causes this error on purpose
	}
	for _, tip := range tips {
		if match := tip.found.FindStringSubmatchIndex(f.Found); match != nil {
			return string(tip.found.ExpandString(nil, tip.means, f.Found, match))
		}
	}
	return ""
}
