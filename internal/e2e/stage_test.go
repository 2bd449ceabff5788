package e2e

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
)

func TestCheck(t *testing.T) {
	tested := repo.Stage{Number: 2, Dir: t.TempDir()}
	NewWithT(t).Expect(os.MkdirAll(filepath.Join(tested.Dir, "test", "e2e"), 0o755)).To(Succeed())
	untested := repo.Stage{Number: 1, Dir: t.TempDir()}
	cases := map[string]struct {
		options  Options
		stage    repo.Stage
		provider string
		want     string
	}{
		"a stage with tests":                     {Options{Image: "a:b", Build: true, Only: "specs"}, tested, providers.Kind, ""},
		"a stage without tests":                  {Options{Image: "a:b"}, untested, providers.Kind, "stage 1 has no end-to-end tests"},
		"a chapter only":                         {Options{Image: "a:b"}, repo.Stage{}, providers.Kind, "stage 0 has no end-to-end tests"},
		"no image":                               {Options{}, tested, providers.Kind, "--image is missing"},
		"a part that does not exist":             {Options{Image: "a:b", Only: "docs"}, tested, providers.Kind, "--only=docs: choose specs or chapter"},
		"an image that the cluster can't pull":   {Options{Image: "a:b", Build: true}, tested, providers.Current, "choose an image that the cluster can pull"},
		"an image that your own cluster can get": {Options{Image: "a:b"}, tested, providers.Current, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.options.Check(c.stage, c.provider)
			if c.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestTheStepsOfAStageTest(t *testing.T) {
	cases := map[string]struct {
		options  Options
		provider string
		want     []string
	}{
		"in a kind cluster": {Options{Build: true}, providers.Kind,
			[]string{"the build of the image", "the creation of the cluster", "the loading of the images", "the specs", "the chapter"}},
		"in the learner's cluster": {Options{}, providers.Current, []string{"the creation of the cluster", "the specs", "the chapter"}},
		"the specs only":           {Options{Only: "specs"}, providers.Current, []string{"the creation of the cluster", "the specs"}},
		"the chapter only":         {Options{Only: "chapter"}, providers.Current, []string{"the creation of the cluster", "the chapter"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			test := (&StageTest{Options: c.options, Provider: c.provider}).test()
			var names []string
			for _, step := range append(test.Begin, test.Steps...) {
				names = append(names, step.Name)
			}
			NewWithT(t).Expect(names).To(Equal(c.want))
		})
	}
}
