import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextStep } from './ttl.ts'

const cases = [
  { name: 'a small cluster', from: 0, nodes: 100, want: 0 },
  { name: 'one node more', from: 0, nodes: 101, want: 1 },
  { name: 'back, but within the overlap', from: 1, nodes: 95, want: 1 },
  { name: 'back below it', from: 1, nodes: 89, want: 0 },
  { name: 'from nothing to very many', from: 0, nodes: 2001, want: 4 },
  { name: 'all gone at once', from: 4, nodes: 0, want: 0 },
]
for (const { name, from, nodes, want } of cases)
  test(`CTL-09 how long kubelets may keep what they read: ${name}`, () => assert.equal(nextStep(from, nodes), want))
