/** The class that provides an extended resource, and the device requests of containers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container } from '#api/gen/types/core.v1'
import type { DeviceClass } from '#api/gen/types/resource.v1'
import { deviceClasses } from '#client/builtIn'
import { nodeOf, podOf, schedulerFixture } from '#testing/schedulerFixture'
import { ExtendedResourceClasses, extendedRequests } from './extendedResources.ts'

const gpu = 'example.com/gpu'
const container = (name: string, count: number, more: Partial<Container> = {}): Container => ({
  name,
  image: 'i',
  resources: count > 0 ? { requests: { cpu: '1', [gpu]: String(count) } } : {},
  ...more,
})
const sidecar = { restartPolicy: 'Always' }

interface Case {
  readonly name: string
  readonly inits?: readonly Container[]
  readonly containers: readonly Container[]
  /** `name=count`. */
  readonly requests: readonly string[]
  /** `container=request`. */
  readonly mappings: readonly string[]
}

const cases: readonly Case[] = [
  {
    name: 'one for each container that asks',
    containers: [container('a', 1), container('b', 0), container('c', 2)],
    requests: ['container-0-request-1=1', 'container-2-request-1=2'],
    mappings: ['a=container-0-request-1', 'c=container-2-request-1'],
  },
  {
    name: 'an init container uses what later containers have',
    inits: [container('i', 2)],
    containers: [container('a', 1), container('b', 1)],
    requests: ['container-1-request-1=1', 'container-2-request-1=1'],
    mappings: ['a=container-1-request-1', 'b=container-2-request-1', 'i=container-1-request-1', 'i=container-2-request-1'],
  },
  {
    name: 'init containers share one request for what is more',
    inits: [container('i', 2), container('j', 4)],
    containers: [container('a', 1)],
    requests: ['container-1-request-1=3', 'container-2-request-1=1'],
    mappings: ['a=container-2-request-1', 'i=container-2-request-1', 'j=container-2-request-1', 'i=container-1-request-1', 'j=container-1-request-1'],
  },
  {
    name: 'a sidecar keeps its own, which only earlier ones may use before',
    inits: [container('i', 1), container('s', 1, sidecar), container('j', 1)],
    containers: [container('a', 0)],
    requests: ['container-1-request-1=1', 'container-2-request-1=1'],
    mappings: ['s=container-1-request-1', 'i=container-1-request-1', 'j=container-2-request-1'],
  },
]

for (const { name, inits = [], containers, requests, mappings } of cases)
  test(`DRA-05 device requests of containers: ${name}`, () => {
    const pod = podOf('p', { containers: [...containers], initContainers: [...inits] })
    const found = extendedRequests(pod, [gpu, 'example.com/none'], (resource) => (resource === gpu ? 'class' : undefined))
    assert.deepEqual(
      found.requests.map(({ name: request, exactly }) => `${request}=${exactly?.count}`),
      requests,
    )
    assert.ok(found.requests.every(({ exactly }) => exactly?.deviceClassName === 'class'))
    assert.deepEqual(
      found.mappings.map(({ containerName, requestName }) => `${containerName}=${requestName}`),
      mappings,
    )
  })

const classOf = (name: string, created: string, extendedResourceName?: string): DeviceClass => ({
  apiVersion: 'resource.k8s.io/v1',
  kind: 'DeviceClass',
  metadata: { name, creationTimestamp: created },
  spec: extendedResourceName === undefined ? {} : { extendedResourceName },
})

test('DRA-05 of two classes for one resource the newer counts, of two as old the first by name; each also gives its own name', () => {
  const [early, late] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z']
  const fixture = schedulerFixture({ nodes: [nodeOf({ name: 'a' })] })
  const classes = new ExtendedResourceClasses(fixture.handle)
  fixture.put(deviceClasses, classOf('old', early, gpu), classOf('x', late, gpu), classOf('b', late, gpu))
  assert.equal(classes.classOf(gpu), 'b')
  assert.equal(classes.classOf('deviceclass.resource.kubernetes.io/old'), 'old')
  assert.equal(classes.classOf('deviceclass.resource.kubernetes.io/none'), undefined)
  assert.deepEqual(classes.givenBy(['cpu', 'example.com/other', gpu]), [gpu])
})
