import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { CommandError } from '#cli/exitCodes'
import type { Exec } from '#host/exec'
import { checkAutostart, disableAutostart, enableAutostart } from './autostart.ts'
import type { ClusterState } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'

const state: ClusterState = { name: 'a', id: '00a7', port: 1, nodes: [], simulatedNodes: [], verbosity: 2 }

/** A host with systemd, whose systemctl is recorded. */
async function onHost(run: (deps: LocalClusterDeps, places: { booted: string; units: string }, calls: string[]) => Promise<void>): Promise<void> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-autostart-'))
  const calls: string[] = []
  const exec = {
    run: async (command: string, args: readonly string[]) => {
      calls.push([command, ...args].join(' '))
      return { code: 0, stdout: '', stderr: '', timedOut: false }
    },
  } as unknown as Exec
  const deps = {
    clock: new VirtualClock(),
    exec,
    home: '/srv/50% of "all" for $5',
    isRoot: true,
    platform: 'linux',
    self: ['/usr/$bin/node', '/opt/50%/$skiff/bin/skiff'],
  }
  await run(deps, { booted: dir, units: path.join(dir, 'units') }, calls).finally(() => fs.rm(dir, { recursive: true }))
}

test('--autostart writes and enables a unit that starts and stops the cluster, and delete removes it', () =>
  onHost(async (deps, places, calls) => {
    await checkAutostart(deps, places)
    await enableAutostart(deps, state, places)
    const file = path.join(places.units, 'skiff-00a7.service')
    const text = await fs.readFile(file, 'utf8')
    assert.match(text, /^ExecStart="\/usr\/\$bin\/node" "\/opt\/50%%\/\$\$skiff\/bin\/skiff" "start" "a" "-q" "--no-kubeconfig"$/m)
    assert.match(text, /^ExecStop="\/usr\/\$bin\/node" "\/opt\/50%%\/\$\$skiff\/bin\/skiff" "stop" "a" "-q"$/m)
    assert.match(text, /^Environment="SKIFF_HOME=\/srv\/50%% of \\"all\\" for \$5"$/m)
    await disableAutostart(deps, state, places)
    await assert.rejects(fs.access(file))
    await disableAutostart(deps, state, places)
    assert.deepEqual(calls, [
      'systemctl --version',
      'systemctl daemon-reload',
      'systemctl enable skiff-00a7.service',
      'systemctl disable skiff-00a7.service',
      'systemctl daemon-reload',
    ])
  }))

test('--autostart is refused with the reason where systemd does not run and without root', () =>
  onHost(async (deps, places) => {
    const refusal = (text: RegExp) => (error: unknown) => error instanceof CommandError && error.exit === 'unmetPrerequisite' && text.test(error.message)
    await assert.rejects(checkAutostart(deps, { ...places, booted: '/nonexistent' }), refusal(/systemd is not process 1 of this host/))
    await assert.rejects(checkAutostart({ ...deps, isRoot: false }, places), refusal(/needs root/))
  }))
