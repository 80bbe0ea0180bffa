/**
 * The setting by which packets between pods of one bridge pass the rules of the IP layer (L3). Without it policies apply only between nodes. The setting
 * belongs to the network namespace of this process.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { isMissing } from '#host/files'

export const bridgeSettingsFolder = '/proc/sys/net/bridge'
const settings = { 'bridge-nf-call-iptables': 'IPv4', 'bridge-nf-call-ip6tables': 'IPv6' } as const

/** @returns why policies are not enforced between pods of this node, one text for each family that has an obstacle */
export async function filterBridgedPackets(folder = bridgeSettingsFolder): Promise<string[]> {
  const obstacles: string[] = []
  for (const [name, family] of Object.entries(settings)) {
    const file = path.join(folder, name)
    try {
      if ((await fs.readFile(file, 'utf8')).trim() !== '1') await fs.writeFile(file, '1')
      if ((await fs.readFile(file, 'utf8')).trim() !== '1') obstacles.push(`${family}: ${file} stays 0`)
    } catch (error) {
      obstacles.push(`${family}: ${isMissing(error) ? `${file} is missing: the kernel has no br_netfilter` : (error as Error).message}`)
    }
  }
  return obstacles
}
