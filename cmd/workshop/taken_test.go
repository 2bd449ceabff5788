package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/repo"
)

var (
	createsNamespace = regexp.MustCompile(`kubectl create namespace (\S+)`)
	deletesGlobals   = regexp.MustCompile(`kubectl delete ((?:namespace|crd|clusterrole|clusterrolebinding|apiservice|validatingwebhookconfiguration|,)+) ([^-].*) --ignore-not-found`)
	namedNamespace   = regexp.MustCompile(`(?m)^namespace: (\S+)|^kind: Namespace\nmetadata:\n  name: (\S+-system)$`)
	namedDefinition  = regexp.MustCompile(`(?m)^kind: CustomResourceDefinition\nmetadata:\n(?:  annotations:\n(?:    .*\n)*)?  name: (\S+)`)
)

// TestChaptersSayWhatTheyMake expects makes="…" in each chapter to name the namespaces that the chapter's commands
// create, the cluster-scoped objects that its cleanup deletes, and the namespaces and CRDs in its stage's manifests.
func TestChaptersSayWhatTheyMake(t *testing.T) {
	r, err := repo.Find(".")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	stages, err := r.Stages()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, stage := range stages {
		t.Run(stage.Name, func(t *testing.T) {
			g := NewWithT(t)
			loaded, err := chapter.Load(stage.Chapter)
			g.Expect(err).NotTo(HaveOccurred())
			wanted := append(madeByCommands(loaded), madeByManifests(g, stage.Dir)...)
			g.Expect(wanted).NotTo(BeEmpty())
			for _, object := range slices.Compact(slices.Sorted(slices.Values(wanted))) {
				g.Expect(loaded.Makes()).To(ContainElement(object), `add it to makes="…" of the chapter's cleanup`)
			}
		})
	}
}

func madeByCommands(loaded *chapter.Chapter) []string {
	var made []string
	for _, step := range loaded.Steps {
		for _, block := range step.Blocks {
			for _, command := range block.Commands {
				if match := createsNamespace.FindStringSubmatch(command.Text); match != nil {
					made = append(made, "namespace/"+match[1])
				}
				match := deletesGlobals.FindStringSubmatch(command.Text)
				if match == nil || !block.Cleanup {
					continue
				}
				for kind := range strings.SplitSeq(match[1], ",") {
					for name := range strings.FieldsSeq(match[2]) {
						made = append(made, kind+"/"+name)
					}
				}
			}
		}
	}
	return made
}

func madeByManifests(g Gomega, stage string) []string {
	if stage == "" {
		return nil
	}
	var made []string
	for _, pattern := range []string{"config/crd/*.yaml", "config/crd/bases/*.yaml", "config/default/kustomization.yaml", "config/manager/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(stage, filepath.FromSlash(pattern)))
		g.Expect(err).NotTo(HaveOccurred())
		for _, path := range paths {
			content, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			for _, match := range namedNamespace.FindAllStringSubmatch(string(content), -1) {
				made = append(made, "namespace/"+match[1]+match[2])
			}
			for _, match := range namedDefinition.FindAllStringSubmatch(string(content), -1) {
				made = append(made, "crd/"+match[1])
			}
		}
	}
	return made
}
