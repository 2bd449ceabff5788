package deployment

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// root is the repository's root, relative to this package.
const root = "../.."

// stage is a stage whose program runs in a cluster.
type stage struct {
	dir     string
	program string
	// installations are the folders of config/ that can be deployed.
	installations []string
}

var stages = []stage{
	{dir: "02-clientgo-foo", program: "foo-controller", installations: []string{"default"}},
	{dir: "03-kubebuilder-guestbook", program: "guestbook-controller", installations: []string{"default"}},
	{dir: "04-operatorsdk-memcached", program: "memcached-operator", installations: []string{"default"}},
	{dir: "05-webhook-password", program: "password-operator", installations: []string{"default", "self-managed", "without-webhooks"}},
	{dir: "06-kluster-digitalocean", program: "kluster-operator", installations: []string{"default", "namespaced"}},
}

var (
	// ownSources matches the lines of a Dockerfile that copy the Go code of the stage's program. ownPackage matches the
	// package to compile.
	ownSources = regexp.MustCompile(`(?m)^COPY (?:STAGE/(?:api|cmd|internal|pkg|\*\.go)\S*|lifecycle|localwebhook|manager) \S+\n`)
	ownPackage = regexp.MustCompile(`-o /manager \S+`)
	// copied matches the lines that copy from the build context, not from another build stage.
	copied = regexp.MustCompile(`(?m)^COPY ([^-\s].*) \S+$`)
)

func TestDockerfilesAgree(t *testing.T) {
	first := commonPart(t, stages[0])
	for _, stage := range stages[1:] {
		NewWithT(t).Expect(commonPart(t, stage)).To(Equal(first),
			"%s/Dockerfile and %s/Dockerfile differ in more than the names, the Go code that they copy and the package that they compile", stage.dir, stages[0].dir)
	}
}

func commonPart(t *testing.T, stage stage) string {
	text := strings.NewReplacer(stage.dir, "STAGE", stage.program, "PROGRAM").Replace(read(t, stage.dir, "Dockerfile"))
	return ownPackage.ReplaceAllString(ownSources.ReplaceAllString(text, ""), "-o /manager PACKAGE")
}

func TestDockerfilePinsItsImagesAndAvoidsRoot(t *testing.T) {
	g := NewWithT(t)
	text := read(t, stages[0].dir, "Dockerfile")
	g.Expect(text).To(MatchRegexp(`(?m)^ARG BUILDER=golang:\d+\.\d+\.\d+$`), "the builder must have a full version")
	g.Expect(text).To(MatchRegexp(`(?m)^ARG BASE=\S+:nonroot@sha256:[0-9a-f]{64}$`), "the base must have a tag for readers, and a digest that pins it")
	g.Expect(text).To(ContainSubstring("\nUSER 65532:65532\n"), "USER must be a number, because Kubernetes can't tell whether a user name is root's")
}

// TestImageFlagsAreThoseOfTheDockerfile checks that `make docker-build OFFLINE=1`, which compiles outside a container,
// uses the Dockerfile's flags, so that it produces the same program as a build with the Dockerfile, byte for byte.
func TestImageFlagsAreThoseOfTheDockerfile(t *testing.T) {
	dockerfile, offline := read(t, stages[0].dir, "Dockerfile"), read(t, "tools", "image.mk")
	for _, flag := range []string{"GOWORK=off", "CGO_ENABLED=0", "go build -trimpath -buildvcs=false", `-ldflags "-s -w `, "-X main.version=", "-X main.revision="} {
		NewWithT(t).Expect(dockerfile).To(ContainSubstring(flag), "the Dockerfiles must use this flag")
		NewWithT(t).Expect(offline).To(ContainSubstring(flag), "tools/image.mk must use this flag")
	}
}

func TestBuildContextContainsWhatIsCopied(t *testing.T) {
	var kept []string
	for line := range strings.Lines(read(t, ".dockerignore")) {
		if pattern, found := strings.CutPrefix(strings.TrimSpace(line), "!"); found {
			kept = append(kept, pattern)
		}
	}
	for _, stage := range stages {
		for _, line := range copied.FindAllStringSubmatch(read(t, stage.dir, "Dockerfile"), -1) {
			for source := range strings.FieldsSeq(line[1]) {
				g := NewWithT(t)
				found, err := filepath.Glob(filepath.Join(root, source))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found).NotTo(BeEmpty(), "%s/Dockerfile copies %s, which does not exist", stage.dir, source)
				g.Expect(isKept(kept, source)).To(BeTrue(), "%s/Dockerfile copies %s, which .dockerignore leaves out", stage.dir, source)
			}
		}
	}
}

// isKept reports whether a pattern names the file or a folder that contains it.
func isKept(patterns []string, file string) bool {
	for ; file != "."; file = path.Dir(file) {
		for _, pattern := range patterns {
			if matched, _ := path.Match(pattern, file); matched {
				return true
			}
		}
	}
	return false
}

func read(t *testing.T, elements ...string) string {
	content, err := os.ReadFile(filepath.Join(append([]string{root}, elements...)...))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}
