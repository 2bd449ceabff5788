package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const limit = 4 * time.Minute

// output can be written and read concurrently.
type output struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (o *output) Write(content []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content.Write(content)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content.String()
}

// program is a running emulator.
type program struct {
	Gomega
	url    string
	output *output
	stop   context.CancelFunc
	ended  chan error
}

var address = regexp.MustCompile(`listens on (http://[0-9.:]+)`)

// start runs the emulator on any free port.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &program{Gomega: NewWithT(t), output: &output{}, stop: cancel, ended: make(chan error, 1)}
	go func() { p.ended <- run(ctx, append(args, "--listen", "127.0.0.1:0"), p.output) }()
	t.Cleanup(p.end)
	p.Eventually(func() []string { return address.FindStringSubmatch(p.output.String()) }).WithTimeout(limit).Should(HaveLen(2))
	p.url = address.FindStringSubmatch(p.output.String())[1]
	return p
}

// end stops the emulator, as Ctrl-C does, and waits for it.
func (p *program) end() {
	if p.ended == nil {
		return
	}
	p.stop()
	p.Eventually(p.ended).WithTimeout(limit).Should(Receive(BeNil()))
	p.ended = nil
}

// ask sends a request to the path of the clusters, and returns the response's status code.
func (p *program) ask(method, body string) int {
	request, err := http.NewRequest(method, p.url+"/v2/kubernetes/clusters", strings.NewReader(body))
	p.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer very-secret")
	response, err := http.DefaultClient.Do(request)
	p.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	return response.StatusCode
}

const demo = `{"name":"demo","region":"nyc1","version":"latest","node_pools":[{"name":"workers","size":"s-1vcpu-2gb","count":1}]}`

func TestTheEmulatorKeepsItsClustersForTheNextRun(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	first := start(t, "--token", "very-secret", "--state", state, "--fault", "GET * 503")
	first.Expect(first.ask("GET", "")).To(Equal(503))
	first.Expect(first.ask("POST", demo)).To(Equal(201))
	first.end()
	first.Expect(first.output.String()).To(ContainSubstring("2 POST /v2/kubernetes/clusters: 201, took effect"))
	first.Expect(first.output.String()).NotTo(ContainSubstring("very-secret"))
	info, err := os.Stat(state)
	first.Expect(err).NotTo(HaveOccurred())
	first.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "no other user may be able to read the state")

	second := start(t, "--token", "very-secret", "--state", state)
	second.Expect(second.ask("POST", demo)).To(Equal(422), "the name must be taken")
}

func TestTheTokenCanStayOutOfTheArguments(t *testing.T) {
	t.Setenv("DO_EMULATOR_TOKEN", "very-secret")
	p := start(t)
	p.Expect(p.ask("GET", "")).To(Equal(200))
	p.end()
	p.Expect(p.output.String()).NotTo(ContainSubstring("very-secret"))
}

func TestTheServerClosesConnectionsThatSendNothing(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t.Context(), http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	g.Expect(server.ReadHeaderTimeout).To(BeNumerically(">", 0), "a client may send half a header, and keep the connection open")
	g.Expect(server.IdleTimeout).To(BeNumerically(">", http.DefaultTransport.(*http.Transport).IdleConnTimeout), "Go's clients must close an unused connection first: net/http doesn't repeat a POST that met a closed one")
}

func TestHelpExplainsEveryFlag(t *testing.T) {
	g := NewWithT(t)
	for _, flag := range []string{"-h", "--help"} {
		printed := &output{}
		g.Expect(run(t.Context(), []string{flag}, printed)).To(Succeed())
		for _, word := range []string{
			"--listen", "--token", "--read-only-token", "--cluster-token", "DO_EMULATOR_TOKEN", "--team", "--clusters", "--assets", "--state", "--provision-time", "--node-time", "--upgrade-time", "--delete-time",
			"--end-state", "--delete-state", "--droplet-limit", "--requests-per-minute", "--requests-per-hour", "--fault", "/emulator/faults", "stuck-delete",
		} {
			g.Expect(printed.String()).To(ContainSubstring(word))
		}
	}
}

func TestMistakesGiveOneLineErrors(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer busy.Close()
	broken := filepath.Join(t.TempDir(), "state.json")
	NewWithT(t).Expect(os.WriteFile(broken, []byte("{"), 0o600)).To(Succeed())
	cases := map[string]struct{ args, message string }{
		"no token":                   {"", "--token is missing"},
		"a team that is not a UUID":  {"--token a --listen 127.0.0.1:0 --team shop", "it must be a UUID"},
		"an unknown flag":            {"--colour red", "unknown flag: --colour"},
		"an unexpected argument":     {"--token a start", `unexpected argument "start": see --help`},
		"all addresses":              {"--token a --listen 0.0.0.0:0", "loopback address"},
		"no host":                    {"--token a --listen :8090", "loopback address"},
		"a host name":                {"--token a --listen localhost:8090", "loopback address"},
		"no port":                    {"--token a --listen 127.0.0.1", "--listen"},
		"a port in use":              {"--token a --listen " + busy.Addr().String(), "choose another port with --listen=127.0.0.1:PORT"},
		"an unknown kind of cluster": {"--token a --clusters kind", "choose stub or kwok"},
		"an invalid fault":           {"--token a --fault drop", "write METHOD PATH KIND"},
		"an invalid duration":        {"--token a --delete-time soon", "delete-time"},
		"an invalid state":           {"--token a --delete-state gone --listen 127.0.0.1:0", "choose none, deleted or deleting"},
		"a broken state file":        {"--token a --listen 127.0.0.1:0 --state " + broken, "remove it to start over"},
		"no tools":                   {"--token a --listen 127.0.0.1:0 --clusters kwok --assets /no/such/folder", "etcd is missing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			t.Setenv("WORKSHOP_CACHE", t.TempDir())
			err := run(ctx, strings.Fields(c.args), &output{})
			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"))
		})
	}
}

func TestControlPlanesEndWithTheEmulator(t *testing.T) {
	t.Setenv("WORKSHOP_CACHE", t.TempDir())
	p := start(t, "--token", "very-secret", "--clusters", "kwok")
	p.Expect(p.ask("POST", demo)).To(Equal(201))
	p.Eventually(p.output.String).WithTimeout(limit).Should(ContainSubstring("Started kube-apiserver."), "the emulator must start a control plane")
	folder := regexp.MustCompile("The control planes are in (.*)\\.\n").FindStringSubmatch(p.output.String())
	p.Expect(folder).To(HaveLen(2))
	p.Expect(folder[1]).To(BeADirectory())
	p.end()
	p.Expect(folder[1]).NotTo(BeADirectory())
}
