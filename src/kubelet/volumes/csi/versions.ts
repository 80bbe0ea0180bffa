/** The versions of CSI that a driver registers with (L3, pure). Upstream: pkg/volume/csi/csi_plugin.go (v1.36). */
import { csiText } from './csiText.ts'

export type Version = readonly number[]

/** @throws Error when the driver has no version 1.x */
export function highestVersion(name: string, versions: readonly string[]): Version {
  const failed = (reason: string) => new Error(csiText(`RegisterPlugin for CSI driver "${name}" failed. ${reason}`))
  if (versions.length === 0) throw failed('Plugin returned an empty list for supported versions')
  const known = versions.flatMap((text) => {
    const parts = /^v?(\d{1,9}(?:\.\d{1,9})+)/.exec(text.trim())?.[1]?.split('.').map(Number)
    return parts && (parts[0] ?? 0) <= 1 ? [parts] : []
  })
  const [highest] = known.sort((left, right) => compareVersions(right, left))
  const refused = (error: string) =>
    failed(`None of the versions specified [${versions.map((one) => JSON.stringify(one)).join(' ')}] are supported. err=${error}`)
  if (!highest) throw refused(`could not find a highest supported version from versions ([${versions.join(' ')}]) reported by this plugin: <nil>`)
  if (highest[0] !== 1) throw refused(`highest supported version reported by plugin is ${highest.join('.')}, must be v1.x`)
  return highest
}

/** Negative when `left` is the lower version. */
export function compareVersions(left: Version, right: Version): number {
  const at = Array.from({ length: Math.max(left.length, right.length) }, (_, index) => (left[index] ?? 0) - (right[index] ?? 0))
  return at.find((difference) => difference !== 0) ?? 0
}
