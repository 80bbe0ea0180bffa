/** The machine and the user as the manager of local clusters needs them (L5). */
import os from 'node:os'
import { createExec } from '#host/exec'
import { skiffHome } from './localCluster/clusterState.ts'
import type { LocalClusterDeps } from './localCluster/deps.ts'
import { createRealClock } from './realClock.ts'

export function localClusterDeps(argv: readonly string[]): LocalClusterDeps {
  const isRoot = process.getuid?.() === 0
  return {
    clock: createRealClock(),
    exec: createExec(),
    isRoot,
    platform: process.platform,
    home: skiffHome(process.env, isRoot, os.homedir()),
    self: [process.execPath, argv[1] ?? ''],
  }
}
