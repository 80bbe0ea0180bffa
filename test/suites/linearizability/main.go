// Reads the history of a round, one operation a line, and checks with porcupine that each key is a linearizable register. Exit codes: 0 linearizable, 1 not, 2 undecided.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Client int    `json:"client"`
	Key    string `json:"key"`
	// read, create, put, cas or delete.
	Op string `json:"op"`
	// What the writer believes to replace; of cas alone.
	From string `json:"from"`
	// No value is written twice.
	Value string `json:"value"`
	// Microseconds.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// ok, missing, exists, conflict, or unknown: it may have happened, now or later, or not.
	Answer string `json:"answer"`
	// Of a read.
	Found string `json:"found"`
}

// The state is the value of the key; empty: there is no object.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, one := range history {
			key := one.Input.(operation).Key
			byKey[key] = append(byKey[key], one)
		}
		parts := [][]porcupine.Operation{}
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		allowed, next := step(state.(string), input.(operation))
		return allowed, next
	},
}

// Whether the answer fits the state, and the state afterwards. An unknown outcome fits each state: as it has no end, it may come last, where nobody sees it.
func step(state string, one operation) (bool, string) {
	applies, next := true, one.Value
	switch one.Op {
	case "read":
		return one.Found == state, state
	case "create":
		applies = state == ""
	case "put":
		applies = state != ""
	case "cas":
		applies = state == one.From && state != ""
	case "delete":
		applies, next = state != "", ""
	default:
		panic("unknown operation " + one.Op)
	}
	switch one.Answer {
	case "unknown":
		if applies {
			return true, next
		}
		return true, state
	case "ok":
		return applies, next
	case "missing":
		return state == "", state
	case "exists":
		return one.Op == "create" && state != "", state
	case "conflict":
		return one.Op == "cas" && state != "" && state != one.From, state
	}
	panic("unknown answer " + one.Answer)
}

func check(history []operation, timeout time.Duration) porcupine.CheckResult {
	operations := make([]porcupine.Operation, 0, len(history))
	for _, one := range history {
		end := one.End
		if one.Answer == "unknown" {
			end = math.MaxInt64
		}
		operations = append(operations, porcupine.Operation{ClientId: one.Client, Input: one, Call: one.Start, Return: end})
	}
	return porcupine.CheckOperationsTimeout(register, operations, timeout)
}

func read(name string) ([]operation, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	history := []operation{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		one := operation{}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, err
		}
		history = append(history, one)
	}
	return history, lines.Err()
}

func main() {
	history, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	result := check(history, 2*time.Minute)
	fmt.Println(result)
	if result == porcupine.Illegal {
		byKey := map[string][]operation{}
		for _, one := range history {
			byKey[one.Key] = append(byKey[one.Key], one)
		}
		for key, part := range byKey {
			if check(part, time.Minute) == porcupine.Illegal {
				fmt.Println(key)
			}
		}
	}
	os.Exit(map[porcupine.CheckResult]int{porcupine.Ok: 0, porcupine.Illegal: 1, porcupine.Unknown: 2}[result])
}
