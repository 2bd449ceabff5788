package incluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
)

// requestTimeout bounds a call to Forward, from the start of kubectl until the function passed to Forward returns.
const requestTimeout = 30 * time.Second

// forwarding matches the line in which kubectl prints the local address from which it forwards.
var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:[0-9]+) `)

// Forward makes kubectl forward a free port on this machine to a port of a pod or Service, and calls the function with
// the local address. Each call starts a new kubectl, because kubectl stops forwarding when the other side cuts a
// connection.
func Forward(ctx context.Context, namespace, target, port string, use func(ctx context.Context, address string) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "kubectl", "port-forward", "--namespace="+namespace, target, ":"+port)
	command.Stderr = ginkgo.GinkgoWriter
	output, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("connect to kubectl: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start kubectl: %w", err)
	}
	defer func() {
		cancel()
		_ = command.Wait() // always an error: kubectl was killed
	}()
	address, err := forwardedAddress(output)
	if err != nil {
		return err
	}
	return use(ctx, address)
}

func forwardedAddress(output io.Reader) (string, error) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if match := forwarding.FindStringSubmatch(lines.Text()); match != nil {
			return match[1], nil
		}
	}
	return "", errors.Join(errors.New("kubectl forwards no port"), lines.Err())
}

// getMetrics requests the metrics with a scheme, http or https, and with a token if there is one. It
// returns the status code and the body.
func (o Operator) getMetrics(ctx context.Context, scheme, token string) (status int, body string, err error) {
	err = Forward(ctx, o.Namespace, "service/"+o.Metrics.Service, "8443", func(ctx context.Context, address string) error {
		status, body, err = Get(ctx, scheme+"://"+address+"/metrics", token)
		return err
	})
	return status, body, err
}

// Get requests a URL, with a token if there is one, and returns the status code and the body. It doesn't verify the
// certificate, which is self-signed, or was issued for a name that differs from the forwarded address.
func Get(ctx context.Context, url, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", fmt.Errorf("make a request: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask for %s: %w", url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("read %s: %w", url, err)
	}
	return response.StatusCode, string(body), nil
}

// tokenOf creates a service account in the operator's namespace and returns a token for it.
func (o Operator) tokenOf(ctx context.Context, account string) string {
	ginkgo.GinkgoHelper()
	Kubectl(ctx, "create", "serviceaccount", account, "--namespace="+o.Namespace)
	return strings.TrimSpace(Kubectl(ctx, "create", "token", account, "--namespace="+o.Namespace))
}
