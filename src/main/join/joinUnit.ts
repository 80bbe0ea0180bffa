/** The unit of systemd that runs what has joined (L5): a kubelet, or a control plane. It starts it at each boot, and again when it ends. */
import path from 'node:path'
import { createExec } from '#host/exec'
import { checkSystemd, installUnit, type Unit } from '../systemd/units.ts'
import type { JoinOptions } from './joinOptions.ts'
import { done } from './progressLines.ts'

const host = () => ({ exec: createExec(), isRoot: process.getuid?.() === 0 })

/** Before anything is written. @throws CommandError unmetPrerequisite */
export function checkInstall(): Promise<void> {
  return checkSystemd(host(), '--install', 'without --install, the machine runs its part of the cluster in the foreground')
}

/** @param kubeletArgs for a node @param self words that run this program */
export function joinUnit(join: JoinOptions, kubeletArgs: readonly string[], self: readonly string[]): Unit {
  const common = { restart: 'always', killMode: 'mixed' } as const
  if (join.as === 'node') return { name: 'skiff-kubelet.service', description: 'Skiff kubelet', command: [...self, 'kubelet', ...kubeletArgs], ...common }
  const words = ['join', '--control-plane', `--config-dir=${path.resolve(join.configDir)}`, `--v=${join.verbosity}`]
  return { name: 'skiff-control-plane.service', description: 'Skiff control plane', command: [...self, ...words], ...common }
}

export async function installJoined(unit: Unit): Promise<void> {
  await installUnit(host(), unit, true)
  done(`${unit.name} runs it from now on: systemctl status ${unit.name}, journalctl -u ${unit.name}`)
}
