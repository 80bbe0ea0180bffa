/** Other people's suites report a missing toolchain before anything is started, and one that was picked does not pass by being skipped. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')
const folder = path.join(root, 'test/suites')
const suites = fs.readdirSync(folder).filter((name) => fs.existsSync(path.join(folder, name, 'run')))

/** A PATH with a shell, and the programs that are named as if they were there. */
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'suites-'))
after(() => fs.rmSync(directory, { recursive: true }))
function pathWith(...programs: string[]): string {
  const place = fs.mkdtempSync(path.join(directory, 'bin-'))
  fs.symlinkSync('/bin/bash', path.join(place, 'bash'))
  for (const program of programs) fs.writeFileSync(path.join(place, program), '#!/bin/sh\n', { mode: 0o755 })
  return place
}

const toolchains: Readonly<Record<string, readonly string[]>> = {
  'cert-manager': ['go'],
  'client-go': ['go'],
  'cloudnative-pg': ['go'],
  'cluster-autoscaler': ['go'],
  'controller-runtime': ['go'],
  'csi-sanity': ['go'],
  'csi-sidecars': ['go'],
  etcd: ['go'],
  gatekeeper: ['go'],
  'gateway-api': ['go'],
  fabric8: ['javac', 'mvn'],
  keda: ['go'],
  'kube-rs': ['cargo'],
  'kube-state-metrics': ['go'],
  linearizability: ['go'],
  'prometheus-operator': ['go'],
  python: ['python3'],
  velero: ['go'],
  vpa: ['go'],
}

/** bash by its path: `env` in the script's first line would look for it. */
const check = (name: string, PATH: string) => spawnSync('/bin/bash', ['run', 'check'], { cwd: path.join(folder, name), env: { PATH }, encoding: 'utf8' })

test('every suite has its toolchain named here', () => assert.deepEqual(suites.sort(), Object.keys(toolchains).sort()))

for (const [name, programs] of Object.entries(toolchains)) {
  test(`the suite ${name} skips with a reason without its toolchain, and its check does nothing with it`, () => {
    const without = check(name, pathWith())
    assert.equal(without.status, 77, without.stderr)
    assert.match(without.stdout, / (is|are) not installed\n$/)
    assert.deepEqual([check(name, pathWith(...programs)).status, check(name, pathWith(...programs)).stdout], [0, ''])
  })
}

function runSuites(PATH: string, ...args: string[]) {
  const tsx = ['--import', 'tsx', 'test/suites/runSuites.ts']
  return spawnSync(process.execPath, [...tsx, ...args], { cwd: root, env: { ...process.env, PATH }, encoding: 'utf8', timeout: 60_000 })
}

const bare = pathWith()

test('a suite that is named and lacks its toolchain is skipped, without a cluster', () => {
  const { status, stdout } = runSuites(bare, 'kube-rs')
  assert.equal(status, 0, stdout)
  assert.match(stdout, /^skipped kube-rs in \d\.\d s: Rust is not installed\n0 passed, 0 failed, 1 skipped\n$/)
})

test('picking a suite fails, no toolchain is there', () => {
  const { status, stderr } = runSuites(bare, '--pick', '7')
  assert.equal(status, 1)
  assert.match(stderr, /^client-go: Go is not installed$/m)
  assert.match(stderr, /^prometheus-operator: is not picked, since its build takes \d+ minutes of processor time$/m)
  assert.match(stderr, /no suite can run here\n$/)
})

test('CI picks a suite, rather than naming one that may be skipped', () => {
  const text = fs.readFileSync(path.join(root, '.ci/run'), 'utf8')
  assert.match(text, /^make suites PICK=/m)
  assert.doesNotMatch(text, /make suites ONLY=/)
})
