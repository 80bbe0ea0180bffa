import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { prometheusText } from '#base/prometheusText'
import { podResourceFamilies } from './podResourcesPage.ts'

const pod = (name: string, spec: object, phase = 'Running') =>
  ({ metadata: { namespace: 'n', name }, spec: { schedulerName: 's', priority: 7, containers: [], ...spec }, status: { phase } }) as unknown as Pod

test('OBS-05 /metrics/resources shows requests and limits of pods with their units, but of none that have ended', () => {
  const resources = { requests: { cpu: '250m', memory: '1Mi', 'example.com/gpu': '2' }, limits: { memory: '2Mi', cpu: '0' } }
  const containers = [{ name: 'c', resources }]
  const families = podResourceFamilies([
    pod('a', { nodeName: 'w', containers }),
    pod('waiting', { containers: [] }),
    pod('done', { nodeName: 'w', containers }, 'Failed'),
  ])
  const text = prometheusText(families)
  const series = (metric: string, resource: string, unit: string, value: number) =>
    `${metric}{namespace="n",pod="a",node="w",scheduler="s",priority="7",resource="${resource}",unit="${unit}"} ${value}`
  assert.deepEqual(
    text.split('\n').filter((line) => line !== '' && !line.startsWith('#')),
    [
      series('kube_pod_resource_limit', 'memory', 'bytes', 2 * 2 ** 20),
      series('kube_pod_resource_request', 'cpu', 'cores', 0.25),
      series('kube_pod_resource_request', 'memory', 'bytes', 2 ** 20),
      series('kube_pod_resource_request', 'example.com/gpu', '', 2),
    ],
  )
  assert.match(text, /^# HELP kube_pod_resource_limit \[STABLE\] /)
})
