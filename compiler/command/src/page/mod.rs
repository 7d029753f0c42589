//! A plan, or two, as a page for a browser: one file, which needs no network.
//!
//! The page consists of a head, a style, the plan as data (`data`) and a script that draws it. Names in a plan may
//! contain anything. So the data is JSON in an element of its own, escaped such that nothing can end that element, and
//! the script writes names as text and never as markup. A policy in the head forbids everything that is not in the
//! file.
//!
//! The script draws with plain SVG: blocks, bars and step lines are rectangles and paths, of which there are some
//! thousands. A library of charts would be larger than the page, and bring its own licence and its own idea of an axis.
//! No such library knows a map of addresses over time. The texts for screen readers and the handling of keys would
//! still have to be written here.

mod data;
mod downsample;
mod hints;
mod segments;

use csdfc_plan::plan::Plan;
use csdfc_plan::timeline::Timeline;
use csdfc_planner::saved::front::SavedFront;

use crate::error::Error;

const STYLE: &str = include_str!("style.css");

/// The script, in parts that share their names.
const SCRIPT: [&str; 10] = [
    include_str!("script/base.js"),
    include_str!("script/search.js"),
    include_str!("script/map.js"),
    include_str!("script/tracks.js"),
    include_str!("script/timeline.js"),
    include_str!("script/peak.js"),
    include_str!("script/layers.js"),
    include_str!("script/network.js"),
    include_str!("script/front.js"),
    include_str!("script/main.js"),
];

/// The page of one plan, or of two plans that are compared, each with its timeline. `front` is drawn in place of the
/// first plan's own.
///
/// # Errors
/// Those of serde. There are none for the plain data of a page.
pub fn page(plans: &[(Plan, Timeline)], front: Option<&SavedFront>) -> Result<String, Error> {
    let data = data::data(plans, front);
    let data = serde_json::to_string(&data).map_err(|error| Error::Bug(error.to_string()))?;
    // Only `<` can end the element or open a comment in it. In JSON, it occurs only in strings.
    let data = data.replace('<', "\\u003c");
    let script = SCRIPT.concat();
    Ok(format!(
        "<!DOCTYPE html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>csdfc report</title>\n\
         <style>\n{STYLE}</style>\n\
         </head>\n\
         <body>\n\
         <main id=\"page\"><noscript>This page draws its plan with a script.</noscript></main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n\"use strict\";\n{script}</script>\n\
         </body>\n\
         </html>\n"
    ))
}
