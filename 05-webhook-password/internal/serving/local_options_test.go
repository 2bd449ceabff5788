package serving_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/05-webhook-password/internal/serving"
)

func TestLocalOptions(t *testing.T) {
	const address = "127.0.0.1:9443"
	cases := map[string]struct {
		options serving.LocalOptions
		problem string
	}{
		"an IP address":              {options: serving.LocalOptions{Address: address}},
		"an IP address of version 6": {options: serving.LocalOptions{Address: "[::1]:9443"}},
		"a host name":                {options: serving.LocalOptions{Address: "localhost:9443"}},
		"the shortest validity":      {options: serving.LocalOptions{Address: address, Validity: 3 * time.Second}},
		"no port":                    {options: serving.LocalOptions{Address: "127.0.0.1"}, problem: "give a host and a port"},
		"any port":                   {options: serving.LocalOptions{Address: "127.0.0.1:0"}, problem: `"0" is no port`},
		"a port that does not exist": {options: serving.LocalOptions{Address: "127.0.0.1:65536"}, problem: `"65536" is no port`},
		"a port by its name":         {options: serving.LocalOptions{Address: "127.0.0.1:https"}, problem: `"https" is no port`},
		"all addresses":              {options: serving.LocalOptions{Address: ":9443"}, problem: "name one address"},
		"all addresses of version 4": {options: serving.LocalOptions{Address: "0.0.0.0:9443"}, problem: "name one address"},
		"all addresses of version 6": {options: serving.LocalOptions{Address: "[::]:9443"}, problem: "name one address"},
		"no host name":               {options: serving.LocalOptions{Address: "my_host:9443"}, problem: "neither an IP address nor a host name"},
		"too short for the checks":   {options: serving.LocalOptions{Address: address, Validity: 17 * time.Second, CheckInterval: time.Second}, problem: "at least 18s"},
		"too short for any interval": {options: serving.LocalOptions{Address: address, Validity: 2 * time.Second}, problem: "at least 3s"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := serving.NewLocal(test.options)
			if test.problem == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.problem)))
		})
	}
}
