/** Puts Skiff's own CNI plugins where the runtime looks for plugins (L3): scripts that start this program. Those of another package are left alone. */
import { chmod, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { exists } from '#host/files'
import { ownPlugin } from '../podNetwork.ts'

/** The role of this program that is a plugin. */
export const pluginRole = 'cni-plugin'

const referencePlugins = ['ptp', 'host-local', 'portmap', 'loopback']

export interface InstalledPlugins {
  /** The node has to use Skiff's own: the reference plugins are not all there. */
  readonly isOwn: boolean
  /** One of them limits the bandwidth of pods. */
  readonly hasBandwidth: boolean
}

/**
 * @param directories where plugins may be; those of Skiff are put into the first
 * @param self words that run this program
 */
export async function installPlugins(directories: readonly string[], self: readonly string[]): Promise<InstalledPlugins> {
  const [directory = ''] = directories
  const isThere = async (name: string) => (await Promise.all(directories.map((one) => exists(path.join(one, name))))).some(Boolean)
  if ((await Promise.all(referencePlugins.map(isThere))).every(Boolean)) return { isOwn: false, hasBandwidth: await isThere('bandwidth') }
  const script = `#!/bin/sh\nexec ${[...self, pluginRole].map(quote).join(' ')}\n`
  for (const name of [ownPlugin, 'loopback']) {
    const file = path.join(directory, name)
    if (name !== ownPlugin && (await exists(file))) continue
    await writeFile(`${file}.new`, script)
    await chmod(`${file}.new`, 0o755)
    await rename(`${file}.new`, file)
  }
  return { isOwn: true, hasBandwidth: true }
}

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`
