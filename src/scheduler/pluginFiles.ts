/**
 * Plugins from files (L3): a module's exports that are plugin definitions, one or several. JavaScript always; TypeScript where Node reads it itself
 * (22.18 and later). Nothing of the kind exists upstream, whose plugins are compiled in.
 */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { PluginDefinition } from './framework/plugin.ts'

/**
 * @param folder what relative names are relative to: the configuration file's
 * @throws Error when a file cannot be loaded or has no plugin
 */
export async function loadPluginFiles(files: readonly string[], folder: string): Promise<readonly PluginDefinition[]> {
  const loaded: PluginDefinition[] = []
  for (const file of files) {
    const found = Object.values(await load(path.resolve(folder, file))).filter(isDefinition)
    if (found.length === 0) throw new Error(`plugin file ${file} exports no plugin: { name, create(args, handle) }`)
    for (const definition of found) {
      if (loaded.some(({ name }) => name === definition.name)) throw new Error(`plugin file ${file}: there is a plugin ${definition.name} already`)
      loaded.push(definition)
    }
  }
  return loaded
}

async function load(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await import(pathToFileURL(file).href)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const hint = code === 'ERR_UNKNOWN_FILE_EXTENSION' ? '; TypeScript needs Node 22.18 or later, or has to be compiled first' : ''
    throw new Error(`plugin file ${file} cannot be loaded: ${message}${hint}`, { cause: error })
  }
}

function isDefinition(value: unknown): value is PluginDefinition {
  if (typeof value !== 'object' || value === null) return false
  const { name, create } = value as Partial<PluginDefinition>
  return typeof name === 'string' && name !== '' && typeof create === 'function'
}
