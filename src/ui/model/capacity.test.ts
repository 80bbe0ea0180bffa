import assert from 'node:assert/strict'
import { test } from 'node:test'
import { amountText, type CountedPod, capacitiesOf } from './capacity.ts'

const pod = (name: string, cpu: string, phase = 'Running'): CountedPod => ({
  metadata: { namespace: 'a', name },
  spec: { nodeName: 'n1', containers: [{ name: 'c', resources: { requests: { cpu } } }] },
  status: { phase },
})

test('ARC-16 each node has the pods on it as shares of what it has for them, without pods that are over', () => {
  const ready = { type: 'Ready', status: 'True' }
  const nodes = [
    { metadata: { name: 'n1' }, status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110' }, conditions: [ready] } },
    { metadata: { name: 'n2' }, spec: { unschedulable: true } },
  ]
  const [n1, n2] = capacitiesOf(nodes, [pod('small', '1'), pod('large', '2'), pod('over', '9', 'Succeeded')])
  const cpu = n1?.shares[0]
  assert.deepEqual([n1?.isReady, cpu?.allocatable, cpu?.requested, cpu?.pods.map(({ name }) => name)], [true, 4000, 3000, ['large', 'small']])
  assert.deepEqual([n1?.shares[1]?.requested, n1?.shares[2]?.requested], [0, 2])
  assert.deepEqual([n2?.isReady, n2?.isCordoned, n2?.shares.map(({ requested }) => requested)], [false, true, [0, 0, 0]])
})

test('ARC-16 amounts are written in units for people', () => {
  assert.deepEqual([amountText('cpu', 1500), amountText('memory', 2 ** 31), amountText('pods', 3)], ['1.5 cores', '2 GiB', '3 pods'])
})
