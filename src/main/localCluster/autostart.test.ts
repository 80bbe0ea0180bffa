import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { CommandError } from '#cli/exitCodes'
import type { Exec } from '#host/exec'
import { checkSystemd, installUnit, removeUnit, unitText } from '../systemd/units.ts'
import { unitNameOf, unitOf } from './autostart.ts'
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
    await checkSystemd(deps, '--autostart', '', places)
    await installUnit(deps, unitOf(deps, state), false, places)
    const file = path.join(places.units, 'skiff-00a7.service')
    const text = await fs.readFile(file, 'utf8')
    assert.match(text, /^ExecStart="\/usr\/\$bin\/node" "\/opt\/50%%\/\$\$skiff\/bin\/skiff" "server" "run" "a"$/m)
    assert.match(text, /^Environment="SKIFF_HOME=\/srv\/50%% of \\"all\\" for \$5"$/m)
    assert.equal(await removeUnit(deps, unitNameOf(state), false, places), true)
    await assert.rejects(fs.access(file))
    assert.equal(await removeUnit(deps, unitNameOf(state), false, places), false)
    assert.deepEqual(calls, [
      'systemctl --version',
      'systemctl daemon-reload',
      'systemctl enable skiff-00a7.service',
      'systemctl disable skiff-00a7.service',
      'systemctl daemon-reload',
    ])
  }))

test('a unit that is installed again with another text is started again, and one with the same text runs on', () =>
  onHost(async (deps, places, calls) => {
    const unit = unitOf(deps, state)
    for (const one of [unit, unit, { ...unit, description: 'another' }]) await installUnit(deps, one, true, places)
    assert.deepEqual(
      calls.filter((call) => /start /.test(call)),
      ['start', 'start', 'restart'].map((verb) => `systemctl ${verb} skiff-00a7.service`),
    )
  }))

test('a unit that cannot be stopped is not removed', () =>
  onHost(async (deps, places) => {
    await installUnit(deps, unitOf(deps, state), false, places)
    const exec = { run: async () => ({ code: 1, stdout: '', stderr: 'Failed to stop', timedOut: false }) } as unknown as Exec
    await assert.rejects(removeUnit({ exec }, unitNameOf(state), true, places), /Failed to stop/)
    await fs.access(path.join(places.units, 'skiff-00a7.service'))
  }))

test('--autostart is refused with the reason where systemd does not run and without root', () =>
  onHost(async (deps, places) => {
    const refusal = (text: RegExp) => (error: unknown) => error instanceof CommandError && error.exit === 'unmetPrerequisite' && text.test(error.message)
    await assert.rejects(checkSystemd(deps, '--autostart', '', { ...places, booted: '/nonexistent' }), refusal(/systemd is not process 1 of this host/))
    await assert.rejects(checkSystemd({ ...deps, isRoot: false }, '--autostart', '', places), refusal(/needs root/))
  }))

const obstacle = spawnSync('systemd-analyze', ['--version']).status === 0 ? false : 'systemd-analyze is not installed'
for (const killMode of ['mixed', 'process'] as const) {
  test(`HA-01 a unit with KillMode=${killMode} passes systemd-analyze verify, without a warning`, { skip: obstacle }, () =>
    onHost(async (deps, { booted }) => {
      const file = path.join(booted, 'skiff-test.service')
      const unit = { ...unitOf({ ...deps, self: [process.execPath, '/opt/50%/$skiff/bin/skiff'] }, state), killMode }
      await fs.writeFile(file, unitText(unit))
      const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' })
      assert.deepEqual([status, stderr.split('\n').filter((line) => line.includes('skiff-test'))], [0, []], stderr)
    }),
  )
}
