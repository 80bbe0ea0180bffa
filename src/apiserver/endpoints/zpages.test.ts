import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import type { Answer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'
import { zpages } from './zpages.ts'

const clock = new VirtualClock('2026-11-07T09:05:00Z')
const pages = zpages({
  clock,
  startedMs: clock.now() - 3_725_000,
  binaryVersion: '1.36.0',
  emulationVersion: '1.36',
  runtimeVersion: 'v20',
  paths: () => ['/api', '/api/v1', '/apis/apps/v1', '/livez', '/livez/ping', '/metrics', '/openid/v1/jwks', '/version'],
  flags: { 'max-requests-inflight': '400', 'goaway-chance': '0' },
})

function ask(path: string, accept?: string): { answer: Answer | undefined; warnings: string[] } {
  const warnings: string[] = []
  const request = { path, headers: accept === undefined ? {} : { accept }, warnings } as unknown as ServerRequest
  const answer = pages.find(({ prefix }) => prefix === path)?.handle(request) as Answer | undefined
  return { answer, warnings }
}

const textOf = ({ answer }: { answer: Answer | undefined }) => (answer?.type === 'bytes' ? Buffer.from(answer.bytes).toString() : undefined)
const warning = 'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.'

test('API-32 /statusz as text', () => {
  const want = `
kube-apiserver statusz
${warning}

Started: Sat Nov  7 08:02:55 UTC 2026
Up: 1 hr 02 min 05 sec
Go version: v20
Binary version: 1.36.0
Emulation version: 1.36
Paths: /livez /metrics /version
`
  for (const accept of [undefined, '', 'text/plain', '*/*']) assert.equal(textOf(ask('/statusz', accept)), want)
})

test('API-32 /flagz as text, sorted', () => {
  assert.equal(textOf(ask('/flagz')), `\nkube-apiserver flagz\n${warning}\ngoaway-chance=0\nmax-requests-inflight=400\n`)
})

test('API-32 the structured forms', () => {
  const { answer, warnings } = ask('/statusz', 'application/json;as=Statusz;v=v1beta1;g=config.k8s.io')
  assert.deepEqual(answer?.type === 'value' && answer.value, {
    kind: 'Statusz',
    apiVersion: 'config.k8s.io/v1beta1',
    metadata: { name: 'kube-apiserver' },
    startTime: '2026-11-07T08:02:55Z',
    uptimeSeconds: 3725,
    goVersion: 'v20',
    binaryVersion: '1.36.0',
    emulationVersion: '1.36',
    paths: ['/livez', '/metrics', '/version'],
  })
  assert.deepEqual(warnings, [])
  const old = ask('/flagz', 'application/yaml;as=Flagz;v=v1alpha1;g=config.k8s.io')
  assert.deepEqual(old.answer?.type === 'value' && [(old.answer.value as { flags: object }).flags, old.answer.encoding], [
    { 'max-requests-inflight': '400', 'goaway-chance': '0' },
    'yaml',
  ])
  assert.deepEqual(old.warnings, ['This version of the flagz endpoint is deprecated. Please use a newer version.'])
})

for (const accept of [
  'application/json',
  'application/json;as=Flagz;v=v1beta1;g=config.k8s.io',
  'application/json;as=Statusz;v=v2;g=config.k8s.io',
  'image/png',
]) {
  test(`API-32 /statusz does not speak ${accept}`, () => {
    assert.throws(
      () => ask('/statusz', accept),
      (error) => isStatus(error, 'NotAcceptable'),
    )
  })
}
