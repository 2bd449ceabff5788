package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/operatortest/traffic"
)

const watchPath = "/api/v1/namespaces/here/configmaps?watch=true"

// eventStream is an API server with one watch, whose events come from a channel. gone is closed when the watch has ended.
func eventStream(events <-chan string, gone chan<- struct{}) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		defer close(gone)
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(http.StatusOK)
		writer.(http.Flusher).Flush()
		for {
			select {
			case event := <-events:
				_, _ = fmt.Fprintln(writer, event)
				writer.(http.Flusher).Flush()
			case <-request.Context().Done():
				return
			}
		}
	}
}

func TestProxyStreamsAWatch(t *testing.T) {
	for protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			events, gone := make(chan string), make(chan struct{})
			tap := traffic.New()
			proxy, client := dial(t, tap.Config(upstream(t, eventStream(events, gone))), protocol)
			response, err := client.Do(request(t, http.MethodGet, proxy.url+watchPath, nil))
			g.Expect(err).NotTo(HaveOccurred(), "the reply must begin before the first event")
			lines := bufio.NewReader(response.Body)
			for i := range 3 {
				event := fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"name":"object-%d"}}}`, i)
				events <- event
				g.Expect(lines.ReadString('\n')).To(Equal(event+"\n"), "each event must arrive before the next one is sent")
			}
			g.Expect(tap.Requests()).To(ConsistOf(HaveField("Verb", "watch")))

			g.Expect(response.Body.Close()).To(Succeed())
			g.Eventually(gone).WithTimeout(long).Should(BeClosed(), "the API server must notice that the operator has ended the watch")
		})
	}
}

// client-go's metadata client prefers protobuf. The kit must see the events of its watch, and the client must
// understand them.
func TestProxyPassesAWatchOfMetadata(t *testing.T) {
	g, tap := NewWithT(t), traffic.New()
	api := upstream(t, func(writer http.ResponseWriter, request *http.Request) {
		if accepted := request.Header.Get("Accept"); !strings.HasPrefix(accepted, "application/json;as=PartialObjectMetadata;") {
			http.Error(writer, accepted, http.StatusNotAcceptable)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintln(writer, `{"type":"ADDED","object":{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":"here","name":"settings"}}}`)
	})
	proxy, _ := dial(t, tap.Config(api), "HTTP/2.0")
	config, err := clientcmd.NewDefaultClientConfig(proxy.kubeconfig("here"), nil).ClientConfig()
	g.Expect(err).NotTo(HaveOccurred())
	clients, err := metadata.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())

	seen, err := clients.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("here").Watch(t.Context(), metav1.ListOptions{})

	g.Expect(err).NotTo(HaveOccurred())
	defer seen.Stop()
	g.Eventually(seen.ResultChan()).WithTimeout(long).Should(Receive(HaveField("Object.Name", "settings")))
	g.Expect(tap.Events()).To(ConsistOf(HaveField("Name", "settings")))
}

func TestKillCutsAWatch(t *testing.T) {
	for protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			var logged bytes.Buffer
			log.SetOutput(&logged)
			defer log.SetOutput(os.Stderr)
			events, gone := make(chan string, 1), make(chan struct{})
			tap := traffic.New()
			proxy, client := dial(t, tap.Config(upstream(t, eventStream(events, gone))), protocol)
			response, err := client.Do(request(t, http.MethodGet, proxy.url+watchPath, nil))
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			events <- `{"type":"ADDED","object":{}}`
			lines := bufio.NewReader(response.Body)
			_, err = lines.ReadString('\n')
			g.Expect(err).NotTo(HaveOccurred())

			tap.Kill()
			_, err = lines.ReadString('\n')
			g.Expect(err).To(HaveOccurred())
			g.Expect(err).NotTo(MatchError(io.EOF), "io.EOF would mean that the watch ended normally")
			g.Eventually(gone).WithTimeout(long).Should(BeClosed())
			_, err = client.Do(request(t, http.MethodGet, proxy.url+"/version", nil)) //nolint:bodyclose // there is no response
			g.Expect(err).To(HaveOccurred(), "no later request may pass")
			proxy.stop()
			g.Expect(logged.String()).To(BeEmpty())
		})
	}
}
