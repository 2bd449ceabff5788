package main

import (
	"context"
	"fmt"
	"path"
	"strings"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/providers"
)

// requireFree returns an error if something that the chapter makes already exists: the command that makes it might
// fail, and the cleanup would delete what was there before.
func (a *app) requireFree(ctx context.Context, environment []string, loaded *chapter.Chapter) error {
	byKind := map[string][]string{}
	var taken []string
	for _, each := range loaded.Makes() {
		kind, pattern, _ := strings.Cut(each, "/")
		names, asked := byKind[kind]
		if !asked {
			var err error
			if names, err = a.names(ctx, environment, kind); err != nil {
				return fmt.Errorf("check whether the cluster already has what %s makes: %w", loaded.Path, err)
			}
			byKind[kind] = names
		}
		for _, name := range names {
			if matches, err := path.Match(pattern, name); err == nil && matches {
				taken = append(taken, kind+"/"+name)
			}
		}
	}
	if len(taken) == 0 {
		return nil
	}
	remedy := a.startAgain() + ", and with NAME=play the chapter is played on another cluster"
	if a.provider == providers.Current {
		remedy = "remove what is in the way first, if it is yours, or choose another cluster"
	}
	return fmt.Errorf("the cluster has %s already, which %s makes and deletes: nothing was changed; %s", strings.Join(taken, ", "), loaded.Path, remedy)
}

// names lists the objects of a kind; for a namespaced kind, only those in the default namespace.
func (a *app) names(ctx context.Context, environment []string, kind string) ([]string, error) {
	out, err := a.kubectl(ctx, environment, "get", kind, "--namespace=default", "--output=name")
	if err != nil {
		return nil, err
	}
	names := strings.Fields(out)
	for i, name := range names {
		names[i] = path.Base(name)
	}
	return names, nil
}
