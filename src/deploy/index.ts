export { type BundledApp, bundleApp } from './bundle-app.ts';
export type { EvaluateOptions } from './evaluate.ts';
export { EVALUATE_MS_MAX } from './limits.ts';
export { type AppChange, type AppWatch, watchApp } from './watch-app.ts';
