#!/usr/bin/env node
/** Writes biome.json from architecture/layers.ts, so that the table is the only place that states the layers. Run with tsx; --print writes to stdout. */
import fs from 'node:fs'
import { impureGlobals, layers, maxLinesPerFile, maxLinesPerFunction, pure, pureModules, rooms, shared } from '../architecture/layers.ts'

const folders = Object.keys(layers)
const pureFolders = pure.map((glob) => `src/${glob}`)

/** The imports that a folder may not write: other folders by name or by a climbing path, and node: modules where it must be pure. */
function bans(folder, { test = false, isPure = false } = {}) {
  const allowed = new Set([folder, ...layers[folder], ...(test ? ['testing'] : [])])
  const banned = folders.filter((other) => !allowed.has(other))
  const groups = []
  if (banned.length > 0) {
    groups.push({
      group: banned.flatMap((other) => [`#${other}/**`, `**/../${other}/**`]),
      message: `${folder} may not import this layer: see architecture/layers.ts`,
    })
  }
  if (isPure) groups.push({ group: ['node:*', ...pureModules.map((name) => `!${name}`)], message: `${folder} is pure: no I/O` })
  return { level: 'error', options: { patterns: groups } }
}

/** The deepest folder below a subfolder of a room that the rules look at. */
const deepest = 4

/**
 * The bans on other subfolders of a room, one override per depth: how far a relative path climbs to leave the subfolder depends on where the
 * importing file lies. An import by name is the same everywhere. `folder` is the subfolder or, with rules of its own, a folder below it.
 */
function roomOverrides(room, subfolder, { folder = subfolder, isPure = pure.includes(`${room}/**`) } = {}) {
  const first = folder.split('/').length
  return Array.from({ length: deepest - first + 1 }, (_, index) => roomOverride(room, subfolder, { folder, isPure, depth: first + index, below: index + 1 }))
}

function roomOverride(room, subfolder, { folder, isPure, depth, below }) {
  const banned = Object.keys(rooms[room]).filter((other) => other !== subfolder && !rooms[room][subfolder].includes(other))
  const up = '../'.repeat(depth)
  const shares = shared[room] ?? []
  const group = [
    ...banned.flatMap((other) => [`${up}${other}/**`, `#${room}/${other}/**`]),
    ...[`${up}*.ts`, `#${room}/*`],
    ...shares.flatMap((file) => [`!${up}${file}`, `!#${room}/${file.replace('.ts', '')}`]),
  ]
  const rule = bans(room, { isPure })
  rule.options.patterns.push({ group, message: `${room}/${subfolder} may not import this part of ${room}: see rooms in architecture/layers.ts` })
  return { includes: [`src/${room}/${folder}${'/*'.repeat(below)}.ts*`, '!**/*.test.ts'], linter: { rules: { style: { noRestrictedImports: rule } } } }
}

const overrides = [{ includes: ['src/**', 'test/**', 'bench/**'], linter: { rules: { style: { noDefaultExport: 'error' } } } }]
// Its grids and lists are widgets of ARIA, whose keys their root takes, and lines of text have no identity but their place; axe checks the page in a browser.
overrides.push({
  includes: ['src/ui/page/**'],
  linter: {
    rules: {
      a11y: { useSemanticElements: 'off', useFocusableInteractive: 'off', noNoninteractiveElementToInteractiveRole: 'off', noNoninteractiveTabindex: 'off' },
      suspicious: { noArrayIndexKey: 'off' },
      style: { noDescendingSpecificity: 'off' },
    },
  },
})
for (const folder of folders) {
  const isPure = pure.some((glob) => glob === `${folder}/**`)
  overrides.push({ includes: [`src/${folder}/**`, '!**/*.test.ts'], linter: { rules: { style: { noRestrictedImports: bans(folder, { isPure }) } } } })
  overrides.push({ includes: [`src/${folder}/**/*.test.ts`], linter: { rules: { style: { noRestrictedImports: bans(folder, { test: true }) } } } })
}
for (const [room, subfolders] of Object.entries(rooms)) {
  for (const subfolder of Object.keys(subfolders)) overrides.push(...roomOverrides(room, subfolder))
}
for (const glob of pure.filter((glob) => !folders.some((folder) => glob === `${folder}/**`))) {
  const [folder, subfolder] = glob.split('/')
  if (rooms[folder]) overrides.push(...roomOverrides(folder, subfolder, { folder: glob.replace(`${folder}/`, '').replace('/**', ''), isPure: true }))
  else overrides.push({ includes: [`src/${glob}`, '!**/*.test.ts'], linter: { rules: { style: { noRestrictedImports: bans(folder, { isPure: true }) } } } })
}
overrides.push({
  includes: [...pureFolders, '!**/*.test.ts'],
  linter: { rules: { style: { noRestrictedGlobals: { level: 'error', options: { deniedGlobals: impureGlobals } } } } },
})
overrides.push({ includes: ['src/api/gen/**'], linter: { rules: { style: { noExcessiveLinesPerFile: 'off' } } }, formatter: { enabled: false } })

const config = {
  $schema: './node_modules/@biomejs/biome/configuration_schema.json',
  files: { includes: ['src/**', 'test/**', 'bench/**', 'architecture/**', 'scripts/**', 'bin/**', '*.json', '!dist'] },
  formatter: { indentStyle: 'space', indentWidth: 2, lineWidth: 160 },
  javascript: { formatter: { quoteStyle: 'single', semicolons: 'asNeeded' } },
  linter: {
    rules: {
      preset: 'recommended',
      suspicious: {
        noImportCycles: { level: 'error', options: { ignoreTypes: false } },
        noExplicitAny: 'error',
      },
      nursery: { noFloatingPromises: 'error' },
      style: {
        noNonNullAssertion: 'off',
        noExcessiveLinesPerFile: { level: 'error', options: { maxLines: maxLinesPerFile } },
      },
      complexity: { noExcessiveLinesPerFunction: { level: 'error', options: { maxLines: maxLinesPerFunction } } },
    },
  },
  overrides,
}
const text = `${JSON.stringify(config, null, 2)}\n`
if (process.argv.includes('--print')) process.stdout.write(text)
else fs.writeFileSync(new URL('../biome.json', import.meta.url), text)
