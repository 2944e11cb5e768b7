//! What runs **here**: reading what users wrote, planning, executing, connecting, reporting.

pub mod action;
pub mod cli;
pub mod config;
pub mod connection;
pub mod doc;
pub mod doctor;
pub mod execute;
pub mod foreign;
pub mod inventory;
pub mod lint;
pub mod literal;
pub mod plan;
pub mod playbook;
pub mod report;
pub mod source;
pub mod spread;
pub mod template;
pub mod value;
pub mod vars;
pub mod vault;
pub mod yaml;
