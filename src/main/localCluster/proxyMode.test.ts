import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { Exec } from '#host/exec'
import { type ClusterState, clusterPaths, readState } from './clusterState.ts'
import { rememberProcess } from './processes.ts'
import { checkProxyMode, withProxyMode } from './proxyMode.ts'

const state: ClusterState = { name: 'a', id: '0000', port: 40_000, nodes: [{ name: 'a-node-1', index: 0 }], simulatedNodes: [], verbosity: 2 }
const answering = (code: number) => ({ run: async () => ({ code, stdout: '', stderr: '', timedOut: false }) }) as unknown as Exec

test('SVC-05 --proxy-mode refuses an unknown mode, simulated nodes, and a host without iptables, whose package it names', async () => {
  await assert.rejects(checkProxyMode(answering(0), 'other', 1), {
    exit: 'usage',
    message: '--proxy-mode other: expected auto, nftables, iptables, userspace, ipvs, none',
  })
  await assert.rejects(checkProxyMode(answering(0), 'iptables', 0), { exit: 'unmetPrerequisite', message: /simulated nodes serve no Services/ })
  await assert.rejects(checkProxyMode(answering(-1), 'iptables', 1), {
    exit: 'unmetPrerequisite',
    message: '--proxy-mode iptables cannot be used here: iptables is not installed; the package iptables has it',
  })
  for (const mode of [undefined, 'auto']) await checkProxyMode(answering(-1), mode, 0)
  await checkProxyMode(answering(0), 'iptables', 1)
})

test('SVC-09 --proxy-mode none asks nothing of the host, and is for real nodes too', async () => {
  await checkProxyMode(answering(-1), 'none', 1)
  await assert.rejects(checkProxyMode(answering(0), 'none', 0), { exit: 'unmetPrerequisite', message: /simulated nodes serve no Services/ })
})

test('SVC-05 a stopped cluster takes another proxy mode for its next start, one that runs does not', async () => {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-proxy-mode-'))
  const paths = clusterPaths(home, 'a')
  try {
    for (const same of [undefined, 'auto']) assert.equal(await withProxyMode(answering(0), paths, state, same), state)
    const changed = await withProxyMode(answering(0), paths, state, 'iptables')
    assert.equal(changed.proxyMode, 'iptables')
    assert.equal((await readState(paths))?.proxyMode, 'iptables')
    const { pid } = paths.server('server')
    await fs.mkdir(path.dirname(pid), { recursive: true })
    await rememberProcess(pid, process.pid, new VirtualClock())
    await assert.rejects(withProxyMode(answering(0), paths, changed, 'nftables'), {
      exit: 'alreadyExists',
      message: 'cluster "a" runs with --proxy-mode iptables',
    })
    assert.equal(await withProxyMode(answering(0), paths, changed, 'iptables'), changed)
  } finally {
    await fs.rm(home, { recursive: true })
  }
})
