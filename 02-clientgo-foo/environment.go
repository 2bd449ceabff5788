package main

//workshop:file 2.15b

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

// messageVariable is the name of the environment variable that holds a Foo's message.
const messageVariable = "MESSAGE"

// wantedVariables returns the environment variables that a Foo asks for.
func wantedVariables(foo *examplev1alpha1.Foo) []corev1.EnvVar {
	if foo.Spec.Message == "" {
		return nil
	}
	return []corev1.EnvVar{{Name: messageVariable, Value: foo.Spec.Message}}
}

// replaceMessage returns the variables of a container with MESSAGE as wanted: in its place if it is already there, or
// at the end if it is new. If wanted is empty, MESSAGE is left out. Variables that other programs set keep their
// order, because a variable can refer to those before it. Don't use present afterwards: the function may overwrite it.
//
//workshop:step 2.15c
func replaceMessage(present, wanted []corev1.EnvVar) []corev1.EnvVar {
	isMessage := func(variable corev1.EnvVar) bool { return variable.Name == messageVariable }
	place := slices.IndexFunc(present, isMessage)
	if place < 0 {
		return append(present, wanted...)
	}
	others := slices.DeleteFunc(present, isMessage) // a name may occur twice
	return slices.Insert(others, place, wanted...)
}
