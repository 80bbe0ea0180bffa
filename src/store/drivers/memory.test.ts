import { describeStore } from '#testing/storeConformance'
import { createMemoryStore } from './memory.ts'

describeStore({ name: 'memory', open: async (clock) => createMemoryStore({ clock }) })
