package process

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/operatortest"
)

const (
	// long is a timeout that no test should reach.
	long = 30 * time.Second
	// roleVariable is the environment variable that says in which role a copy of this test program runs.
	roleVariable = "OPERATORTEST_PROCESS_ROLE"
	// upstreamVariable is the environment variable with the API server's address, for the role "tests".
	upstreamVariable = "OPERATORTEST_PROCESS_UPSTREAM"
)

// roles contains a function for each role; it returns the exit status. All roles but one are operators.
var roles = map[string]func() int{
	"obeys": func() int {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		report("/started")
		<-terminated
		report("/ended")
		return 0
	},
	"fails late": func() int {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		report("/started")
		<-terminated
		fmt.Println("last words")
		return 2
	},
	"exits like a virtual machine": func() int {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		report("/started")
		<-terminated
		return 143
	},
	"handles no signal": func() int {
		report("/started")
		select {}
	},
	"ignores SIGTERM": func() int {
		signal.Ignore(syscall.SIGTERM)
		report("/started")
		select {}
	},
	"fails": func() int {
		for i := range 100 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		report("/started")
		return 3
	},
	"gives up": func() int {
		report("/started")
		return 0
	},
	"leaves a child": func() int {
		child := exec.Command("sleep", "1000")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		report("/started")
		return 1
	},
	// This role is not an operator, but a test process that runs one.
	"tests": func() int {
		config := &rest.Config{Host: os.Getenv(upstreamVariable)}
		fmt.Println(playing("ignores SIGTERM").Run(context.Background(), config, operatortest.RunOptions{Namespace: "here"}))
		return 1 // not reached: it is killed
	},
}

func TestMain(m *testing.M) {
	if role, found := roles[os.Getenv(roleVariable)]; found {
		os.Exit(role())
	}
	os.Exit(m.Run())
}

func playing(role string) Command {
	return Command{Args: []string{os.Args[0]}, Env: []string{roleVariable + "=" + role}}
}

// report makes a request with the ID of the process and the path of its kubeconfig.
func report(path string) {
	kubeconfig := os.Getenv("KUBECONFIG")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		panic(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		panic(err)
	}
	query := url.Values{"pid": {strconv.Itoa(os.Getpid())}, "kubeconfig": {kubeconfig}}
	response, err := client.Get(config.Host + path + "?" + query.Encode())
	if err != nil {
		panic(err)
	}
	_ = response.Body.Close()
}

// reported is what a role has reported in a request.
type reported struct {
	path       string
	pid        int
	kubeconfig string
}

// listener starts an API server that only sends the roles' reports to the returned channel.
func listener(t *testing.T) (*httptest.Server, <-chan reported) {
	reports := make(chan reported, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		pid, _ := strconv.Atoi(request.URL.Query().Get("pid"))
		reports <- reported{path: request.URL.Path, pid: pid, kubeconfig: request.URL.Query().Get("kubeconfig")}
	}))
	t.Cleanup(server.Close)
	return server, reports
}

func restConfig(server *httptest.Server) *rest.Config { return &rest.Config{Host: server.URL} }

// upstream starts an API server with HTTP/2, and returns the configuration of an administrator who impersonates the
// operator's user.
func upstream(t *testing.T, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{
		Host: server.URL, BearerToken: "administrator", TLSClientConfig: rest.TLSClientConfig{CAData: authority},
		Impersonate: rest.ImpersonationConfig{UserName: "operator", Groups: []string{"system:authenticated"}},
	}
}

// protocols contains, for each version of HTTP, the protocols that a client must offer the proxy to get that version.
var protocols = map[string][]string{"HTTP/1.1": {"http/1.1"}, "HTTP/2.0": {"h2", "http/1.1"}}

// dial starts a proxy and returns it with a client that has its kubeconfig.
func dial(t *testing.T, config *rest.Config, protocol string) (*proxy, *http.Client) {
	t.Helper()
	g := NewWithT(t)
	started, err := startProxy(config)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(started.stop)
	own, err := clientcmd.NewDefaultClientConfig(started.kubeconfig("here"), nil).ClientConfig()
	g.Expect(err).NotTo(HaveOccurred())
	own.NextProtos = protocols[protocol]
	client, err := rest.HTTPClientFor(own)
	g.Expect(err).NotTo(HaveOccurred())
	return started, client
}
