package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/operatortest/traffic"
)

// request returns a request that is cancelled when its timeout has passed or the test ends.
func request(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	t.Cleanup(cancel)
	made, err := http.NewRequestWithContext(ctx, method, url, body)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return made
}

func TestProxyForwards(t *testing.T) {
	for protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			var seen *http.Request
			var body []byte
			config := upstream(t, func(writer http.ResponseWriter, request *http.Request) {
				seen = request
				body, _ = io.ReadAll(request.Body)
				writer.Header().Set("Audit-Id", "1")
				writer.Header().Set("Trailer", "Checksum")
				writer.WriteHeader(http.StatusConflict)
				writer.(http.Flusher).Flush() // otherwise the reply has a length, and no trailer in HTTP/1.1
				_, _ = writer.Write([]byte("answer"))
				writer.Header().Set("Checksum", "2")
			})
			proxy, client := dial(t, config, protocol)
			sent := request(t, http.MethodPut, proxy.url+"/api/v1/namespaces/here/configmaps/a%2Fb?fieldManager=me", strings.NewReader("text"))
			sent.Header.Set("Content-Type", "text/plain")
			sent.Header.Set("User-Agent", "operator/1")

			response, err := client.Do(sent)
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()

			g.Expect(response.Proto).To(Equal(protocol))
			g.Expect(response.StatusCode).To(Equal(http.StatusConflict))
			g.Expect(response.Header.Get("Audit-Id")).To(Equal("1"))
			g.Expect(io.ReadAll(response.Body)).To(BeEquivalentTo("answer"))
			g.Expect(response.Trailer.Get("Checksum")).To(Equal("2"))

			g.Expect(seen.Proto).To(Equal("HTTP/2.0"))
			g.Expect(seen.Method + " " + seen.URL.RequestURI()).To(Equal("PUT /api/v1/namespaces/here/configmaps/a%2Fb?fieldManager=me"))
			g.Expect(string(body)).To(Equal("text"))
			g.Expect(seen.Header).To(gstruct.MatchKeys(gstruct.IgnoreExtras, gstruct.Keys{
				"Content-Type": ConsistOf("text/plain"), "User-Agent": ConsistOf("operator/1"),
				"Authorization": ConsistOf("Bearer administrator"), "Impersonate-User": ConsistOf("operator"),
				"Impersonate-Group": ConsistOf("system:authenticated"),
			}))
			g.Expect(seen.Header).NotTo(HaveKey("X-Forwarded-For"))
		})
	}
}

func TestProxyPassesBodiesOfAnySize(t *testing.T) {
	g := NewWithT(t)
	config := upstream(t, func(writer http.ResponseWriter, request *http.Request) { _, _ = io.Copy(writer, request.Body) })
	proxy, client := dial(t, traffic.New().Config(config), "HTTP/2.0")
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	response, err := client.Do(request(t, http.MethodPost, proxy.url+"/api/v1/namespaces/here/configmaps", bytes.NewReader(large)))
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(answer, large)).To(BeTrue())
}

func TestAFailedRequestIsABrokenConnection(t *testing.T) {
	failures := map[string]traffic.Action{
		"a dropped request": {Drop: errors.New("dropped by the test")},
		"a lost reply":      {Lose: errors.New("lost by the test")},
		"a killed operator": {Kill: true},
	}
	for protocol := range protocols {
		for name, action := range failures {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				g := NewWithT(t)
				tap := traffic.New()
				tap.SetRule(func(traffic.Request) traffic.Action { return action })
				proxy, client := dial(t, tap.Config(upstream(t, func(http.ResponseWriter, *http.Request) {})), protocol)
				body := strings.NewReader(`{"metadata":{"name":"settings"}}`)
				_, err := client.Do(request(t, http.MethodPost, proxy.url+"/api/v1/namespaces/here/configmaps", body)) //nolint:bodyclose // there is no response
				g.Expect(err).To(HaveOccurred())
				g.Expect(tap.Requests()).To(ConsistOf(HaveField("Name", "settings")))
			})
		}
	}
}

func TestProxyRefuses(t *testing.T) {
	tests := map[string]struct {
		path    string
		change  func(http.Header)
		code    int
		message string
	}{
		"a caller without a token": {
			change: func(header http.Header) { header.Del("Authorization") },
			code:   http.StatusUnauthorized, message: "use the kubeconfig that the test kit gives to the operator",
		},
		"a caller with another token": {
			change: func(header http.Header) { header.Set("Authorization", "Bearer administrator") },
			code:   http.StatusUnauthorized, message: "use the kubeconfig",
		},
		"impersonation of a user": {
			change: func(header http.Header) { header.Set("Impersonate-User", "admin") },
			code:   http.StatusForbidden, message: "an operator under test can't impersonate a user",
		},
		"impersonation of a group only": {
			change: func(header http.Header) { header.Set("Impersonate-Group", "system:masters") },
			code:   http.StatusForbidden, message: "can't impersonate",
		},
		"further attributes of a user": {
			change: func(header http.Header) { header.Set("Impersonate-Extra-Scopes", "all") },
			code:   http.StatusForbidden, message: "can't impersonate",
		},
		"a user in the header of an authenticating proxy": {
			change: func(header http.Header) { header.Set("X-Remote-User", "admin") },
			code:   http.StatusForbidden, message: "can't impersonate",
		},
		"a watch over WebSocket": {
			path: watchPath,
			change: func(header http.Header) {
				header.Set("Connection", "Upgrade")
				header.Set("Upgrade", "websocket")
			},
			code: http.StatusServiceUnavailable, message: "watch over HTTP",
		},
	}
	config := upstream(t, func(_ http.ResponseWriter, request *http.Request) {
		t.Errorf("the API server got %s with %v", request.URL, request.Header)
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			proxy, client := dial(t, config, "HTTP/1.1")
			asked := request(t, http.MethodGet, proxy.url+test.path, nil)
			asked.Header.Set("Authorization", "Bearer "+proxy.token)
			test.change(asked.Header)
			if asked.Header.Get("Authorization") == "" { // otherwise client-go's client adds it
				client.Transport = client.Transport.(interface{ WrappedRoundTripper() http.RoundTripper }).WrappedRoundTripper()
			}
			response, err := client.Do(asked)
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			g.Expect(response.StatusCode).To(Equal(test.code))
			var status metav1.Status
			g.Expect(json.NewDecoder(response.Body).Decode(&status)).To(Succeed())
			g.Expect(status.Code).To(BeEquivalentTo(test.code))
			g.Expect(status.Message).To(ContainSubstring(test.message))
		})
	}
}

func TestUpgradesPass(t *testing.T) {
	for _, protocol := range []string{"SPDY/3.1", "websocket"} {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			config := upstream(t, func(writer http.ResponseWriter, request *http.Request) {
				writer.Header().Set("Connection", "Upgrade")
				writer.Header().Set("Upgrade", request.Header.Get("Upgrade"))
				writer.WriteHeader(http.StatusSwitchingProtocols)
				connection, buffered, err := http.NewResponseController(writer).Hijack()
				if err != nil {
					return
				}
				defer connection.Close()
				line, _ := buffered.ReadString('\n')
				_, _ = connection.Write([]byte("echo " + line))
			})
			proxy, client := dial(t, traffic.New().Config(config), "HTTP/1.1")
			asked := request(t, http.MethodPost, proxy.url+"/api/v1/namespaces/here/pods/web-0/exec", nil)
			asked.Header.Set("Connection", "Upgrade")
			asked.Header.Set("Upgrade", protocol)
			response, err := client.Do(asked)
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			g.Expect(response.StatusCode).To(Equal(http.StatusSwitchingProtocols))
			_, err = response.Body.(io.Writer).Write([]byte("hello\n"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bufio.NewReader(response.Body).ReadString('\n')).To(Equal("echo hello\n"))
		})
	}
}

func TestStopEndsRequestsInFlight(t *testing.T) {
	for protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			tap := traffic.New()
			held := make(chan struct{})
			tap.SetRule(func(traffic.Request) traffic.Action {
				close(held)
				return traffic.Action{Hold: make(chan struct{})}
			})
			proxy, client := dial(t, tap.Config(upstream(t, func(http.ResponseWriter, *http.Request) {})), protocol)
			failed := make(chan error, 1)
			put := request(t, http.MethodPut, proxy.url+"/api/v1/namespaces/here/configmaps/settings", strings.NewReader("{}"))
			go func() {
				_, err := client.Do(put) //nolint:bodyclose // there is no response
				failed <- err
			}()
			g.Eventually(held).WithTimeout(long).Should(BeClosed())
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				proxy.stop()
			}()
			g.Eventually(stopped).WithTimeout(long).Should(BeClosed())
			g.Eventually(failed).WithTimeout(long).Should(Receive(HaveOccurred()))
			g.Expect(tap.Requests()).To(ConsistOf(And(HaveField("Done", true), HaveField("Canceled", true))))
		})
	}
}
