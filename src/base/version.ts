/**
 * Skiff's version, the Kubernetes release that it implements, and the commit that it was built from (L0): the one place that names them.
 * `docs/upgrading.md` says how the next Kubernetes release is taken in. Upstream: component-base/version.
 */
import { bareMap } from './bareMap.ts'

/** As package.json has it. */
export const skiffVersion = '0.1.0'

export const kubernetesMajor = '1'
export const kubernetesMinor = '36'
/** `1.36`. */
export const kubernetesVersion = `${kubernetesMajor}.${kubernetesMinor}`
/** `v1.36.0`, as nodes and the command line report it. */
export const kubernetesRelease = `v${kubernetesVersion}.0`
/** The version that servers and metrics report. */
export const gitVersion = `${kubernetesRelease}+skiff`
/** Clients as old as this minor version work against it. */
export const minCompatibilityMinor = String(Number(kubernetesMinor) - 1)

/** The commit and time of a build. */
export interface BuildInfo {
  readonly gitCommit: string
  /** `clean` or `dirty`; empty when it is unknown. */
  readonly gitTreeState: string
  /** In RFC 3339. */
  readonly buildDate: string
}

/** Upstream's values for code that no build has stamped. */
const unstamped: BuildInfo = { gitCommit: '', gitTreeState: '', buildDate: '1970-01-01T00:00:00Z' }

/** The build writes it into the bundle; code that runs from source has none. */
declare const SKIFF_BUILD: BuildInfo | undefined

export const buildInfo: BuildInfo = typeof SKIFF_BUILD === 'undefined' ? unstamped : SKIFF_BUILD

/** Node's names of architectures → Go's, where they differ. */
const goArchitectures: Readonly<Record<string, string>> = bareMap({ x64: 'amd64', ia32: '386' })

/** `linux/amd64`, from Node's names of the platform and the architecture. */
export function goPlatform(platform: string, architecture: string): string {
  return `${platform}/${goArchitectures[architecture] ?? architecture}`
}
