package generator

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

func TestWarnings(t *testing.T) {
	tests := map[string]struct {
		change func(*secretv1.PasswordPolicy)
		want   []string
	}{
		"the defaults": {},
		"8 letters": {
			change: func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 8, nil },
			want:   []string{"spec.policy promises passwords of only 45 bits, which can be guessed: ask for a greater length (64 bits are hard to guess)"},
		},
		"19 digits": {
			change: func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 19, require(19, 0) },
			want:   []string{"spec.policy promises passwords of only 63 bits, which can be guessed: ask for a greater length (64 bits are hard to guess)"},
		},
		"20 digits": {change: func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 20, require(20, 0) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Warnings(policyOf(test.change))).To(Equal(test.want))
		})
	}
}

// TestBits compares Bits with exact logarithms, for every possible policy that the schema allows.
func TestBits(t *testing.T) {
	compared := 0
	for _, letterCase := range []secretv1.LetterCase{secretv1.CaseMixed, secretv1.CaseLower} {
		for _, repeat := range []secretv1.Repetition{secretv1.RepeatAllowed, secretv1.RepeatForbidden} {
			for length := 8; length <= 128; length++ {
				compared += compareBits(t, length, letterCase, repeat)
			}
		}
	}
	t.Logf("%d policies compared", compared)
	if compared < 1000 {
		t.Error("too few policies were compared: check how the test counts them")
	}
}

// compareBits compares Bits with the exact logarithm for every possible policy of this length, letter case and
// repetition, and returns the number of these policies.
func compareBits(t *testing.T, length int, letterCase secretv1.LetterCase, repeat secretv1.Repetition) (compared int) {
	t.Helper()
	policy := secretv1.PasswordPolicy{Length: int32(length), Case: letterCase, Repeat: repeat, Require: require(0, 0)}
	for digits := range length + 1 {
		for symbols := range length - digits + 1 {
			policy.Require[0].Count, policy.Require[1].Count = new(int32(digits)), new(int32(symbols))
			exact := choices(len(lettersOf(policy)), length-digits-symbols, repeat) + choices(10, digits, repeat) + choices(30, symbols, repeat)
			if math.IsInf(exact, -1) {
				continue // impossible
			}
			compared++
			expectBits(t, policy, exact)
		}
	}
	return compared
}

func expectBits(t *testing.T, policy secretv1.PasswordPolicy, exact float64) {
	t.Helper()
	bits := Bits(policy)
	caution := 1.0 // because of rounding
	if policy.Repeat == secretv1.RepeatForbidden {
		caution = 8 // because Bits counts the same entropy for each character
	}
	switch {
	case bits >= weakBits && exact < weakBits:
		t.Errorf("%s: there is no warning, although there are only %.2f bits", Describe(policy), exact)
	case bits < weakBits && float64(bits) > exact:
		t.Errorf("%s: %d bits are promised, but there are only %.2f", Describe(policy), bits, exact)
	case bits < weakBits && exact >= weakBits+caution:
		t.Errorf("%s: there is a warning of %d bits, although there are %.2f", Describe(policy), bits, exact)
	case bits < weakBits && policy.Length > 24:
		t.Errorf("%s: there is a warning for a length that the comparison with config/policies leaves out", Describe(policy))
	}
}

// choices returns the binary logarithm of the number of sequences that have this many characters from an alphabet of
// this size. With RepeatForbidden, it counts only those without a repeated character. The result is minus infinity if
// there are none.
func choices(alphabet, characters int, repeat secretv1.Repetition) float64 {
	if repeat != secretv1.RepeatForbidden {
		return float64(characters) * math.Log2(float64(alphabet))
	}
	if characters > alphabet {
		return math.Inf(-1)
	}
	sum := 0.0
	for i := range characters {
		sum += math.Log2(float64(alphabet - i))
	}
	return sum
}
