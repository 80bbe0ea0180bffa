/** `skiff bundle` over stores and API servers of this process (L5). Each part is loaded by the command that needs it. */
import { openBundle } from '#cli/bundle/bundleReader'
import type { Bundles } from '#cli/bundles'
import type { LocalPrograms } from '#cli/command'
import type { LocalClusterDeps } from '../localCluster/deps.ts'

export function createBundles(deps: LocalClusterDeps, local: Pick<LocalPrograms, 'certificate'>): Bundles {
  return {
    objectFile: async (directory) => (await import('./objectFile.ts')).createObjectFile(directory),
    async serve(file) {
      const [bundle, { serveBundle }] = await Promise.all([openBundle(file), import('./serveBundle.ts')])
      try {
        const server = await serveBundle(bundle, deps.clock, local)
        return { ...server, index: bundle.index, close: () => server.close().finally(bundle.close) }
      } catch (error) {
        await bundle.close()
        throw error
      }
    },
    serveStopped: async (name) => (await import('./serveStopped.ts')).serveStopped(deps, local, name),
  }
}
